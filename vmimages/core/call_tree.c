#include "call.h"
#include "tree.h"
#include "trees.h"

/* A tree's failure is at a path of its own. */
static int ended(int outcome, const struct tree_tally *tally, struct calls *calls)
{
    if (outcome != 0)
        calls->path = tally->path;
    return outcome;
}

int call_walk(const struct arguments *with, struct calls *calls)
{
    struct tree_tally *tally = trees_tally(&calls->trees, "walk", with->text[0]);

    return ended(tree_walk(with->text[0], with->text[1], with->text[2][0], tally), tally, calls);
}

int call_copy(const struct arguments *with, struct calls *calls)
{
    struct tree_tally *tally = trees_tally(&calls->trees, "copy", with->text[0]);
    uint64_t before = tally->bytes;
    int outcome = tree_copy(with->text[0], with->text[1], with->text[2], tally);

    calls->bytes = tally->bytes - before;
    return ended(outcome, tally, calls);
}

int call_remove(const struct arguments *with, struct calls *calls)
{
    struct tree_tally *tally = trees_tally(&calls->trees, "remove", with->text[0]);

    return ended(tree_remove(with->text[0], with->text[1], tally), tally, calls);
}
