import { array, boolean, constant, constantFrom, nat, oneof, record, tuple } from 'fast-check';

export const limits = { maxActive: 2, maxWaiting: 4 };
export const workers = 3;

export type JobStep =
  | {
      readonly type: 'ask';
      readonly client: number;
      readonly worker: number;
      readonly isStreamed: boolean;
      readonly isLate: boolean;
    }
  | { readonly type: 'chat'; readonly client: number; readonly worker: number; readonly conversation: number }
  | {
      readonly type: 'answer' | 'fail' | 'break' | 'leave' | 'kill-worker' | 'delete' | 'vanish';
      readonly which: number;
    }
  | { readonly type: 'flood'; readonly client: number; readonly worker: number; readonly count: number }
  | { readonly type: 'linger' | 'miss-start' | 'cut' }
  | { readonly type: 'pass'; readonly ms: number };

const clientFields = { client: nat(5), worker: nat(workers - 1) };
/** Burst of jobs that may fill one client's places beyond its share. */
const flood = record({
  type: constant('flood' as const),
  ...clientFields,
  count: nat(limits.maxActive + limits.maxWaiting),
});

const ways = array(
  oneof(
    {
      weight: 4,
      arbitrary: record({
        type: constant('ask' as const),
        ...clientFields,
        isStreamed: boolean(),
        isLate: constantFrom(true, false, false, false),
      }),
    },
    { weight: 4, arbitrary: record({ type: constant('chat' as const), ...clientFields, conversation: nat(3) }) },
    { weight: 6, arbitrary: record({ type: constant('answer' as const), which: nat(3) }) },
    {
      weight: 5,
      arbitrary: record({
        type: constantFrom('fail', 'break', 'leave', 'kill-worker', 'delete', 'vanish'),
        which: nat(9),
      }),
    },
    { weight: 2, arbitrary: record({ type: constantFrom('linger', 'miss-start') }) },
    record({ type: constant('cut' as const) }),
    record({ type: constant('pass' as const), ms: constantFrom(1, 100, 15_000, 120_000, 600_000) }),
  ),
  { maxLength: 30, size: 'max' },
);

/** Sequences that begin with a burst: only the first client, or one after a long time, is alone. */
export const jobSteps = tuple(flood, ways).map(([first, others]) => [first, ...others]);
