/* What Linux before 4.2 wants to know of its compiler, for every gcc since 5: see adaptations.yaml, compiler-header. */
#ifndef __LINUX_COMPILER_H
#error "include <linux/compiler.h> instead"
#endif

#define __used __attribute__((__used__))
#define __must_check __attribute__((warn_unused_result))
#define __compiler_offsetof(type, member) __builtin_offsetof(type, member)
#define __cold __attribute__((__cold__))
#define __noclone __attribute__((__noclone__))
#define __visible __attribute__((externally_visible))
#define __compiletime_warning(message) __attribute__((warning(message)))
#define __compiletime_error(message) __attribute__((error(message)))
#define __linktime_error(message) __attribute__((error(message)))
#define unreachable() __builtin_unreachable()

/* The empty statement keeps old kernels' workaround for a gcc 4.8 bug in place where they expect one. */
#define asm_volatile_goto(x...)                                                                                        \
	do {                                                                                                           \
		asm volatile goto(x);                                                                                  \
		asm("");                                                                                               \
	} while (0)

#ifdef CONFIG_ARCH_USE_BUILTIN_BSWAP
#define __HAVE_BUILTIN_BSWAP32__
#define __HAVE_BUILTIN_BSWAP64__
#define __HAVE_BUILTIN_BSWAP16__
#endif
