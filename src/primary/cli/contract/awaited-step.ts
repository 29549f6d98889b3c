/** Step that a program must finish within a limit. `Late`: event that ends the turn if the step takes longer. */
export interface AwaitedStep<Late> {
  /** Differs from the name of the step before. */
  readonly name: string;
  readonly limitMs: number;
  readonly late: Late;
}

/** Longest time for each step before the model gets its prompt. Such a step needs no model. */
export const openingLimitMs = 20_000;
/** Longest time between a program's report that it is idle and the end of its turn. */
export const idleLimitMs = 3000;
/** Longest time between the last message of an answer and the end of its turn; claude takes at most 0.2 s. */
export const resultLimitMs = 10_000;

/** Message to add to a turn. `input` is empty if the message waits for a pause. The id is unique in its process. */
export interface MessageInput {
  readonly id: string;
  readonly input: string;
}

/** Event: the model gets the message with this id, after the answer so far. */
export interface MessageAdded {
  readonly type: 'message-added';
  readonly id: string;
}

/** Event: the program refuses the message with this id. */
export interface MessageRefused {
  readonly type: 'message-refused';
  readonly id: string;
}
