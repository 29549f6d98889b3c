const all = ['primary/jobs', 'primary/cli', 'primary/conversations', 'primary/limits', 'shared/ipc'];

/** The folders below src that are mutated. */
module.exports = process.env.MUTATE?.split(',') ?? all;
