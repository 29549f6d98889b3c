import { type WaitReason, waitReasons } from '../job.js';

const waitReasonTexts: Readonly<Record<WaitReason, string>> = {
  slot: 'all slots are taken or reserved, or waiting callers have priority',
  client: 'its client runs its maximum number of jobs',
  cli: 'its model CLI runs its maximum number of jobs',
  conversation: 'an earlier turn of its conversation is not finished',
  account: 'the account of its model CLI is blocked',
  group: 'a group of its client runs its maximum number of jobs',
};

/** Returns a sentence for the API's documentation: each reason with its word. */
export function describeWaitReasons(whose: string): string {
  const reasons = waitReasons.map((reason) => `${waitReasonTexts[reason]} (\`${reason}\`)`);
  return `Reason why ${whose} waits: ${reasons.join('; ')}.`;
}
