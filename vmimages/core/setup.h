/* The setup: what a guest is to do, step by step.
 *
 * Text, one directive a line, fields separated by one TAB each, no escapes. The first line is
 * `fsexp-setup<TAB>1`. */
#ifndef CORE_SETUP_H
#define CORE_SETUP_H

#include <stddef.h>

#include "failure.h"
#include "record.h"

/* Longest setup. It bounds the records that repeat parts of it. */
#define SETUP_BYTES_MAX (64 * 1024)

struct directive; /* what a step does: a row of a table */

struct step {
    const struct directive *directive;
    size_t count;  /* fields */
    char **fields; /* without the directive's name, ended by NULL */
};

struct setup {
    struct step *steps;
    size_t count;
    char **fields; /* all steps' */
};

/* Take `text` apart, in place. 0; or -1 with the failure, of the step "setup". Free it in both
 * cases; the text must live as long. */
int setup_parse(char *text, size_t length, struct setup *setup, struct failure *failure);
void setup_free(struct setup *setup);

/* The name of a step's directive. */
const char *setup_step_name(const struct step *step);

/* Do the steps in order, until one fails. 0, or -1 with its failure. */
int setup_run(const struct setup *setup, struct recorder *records, struct failure *failure);

#endif
