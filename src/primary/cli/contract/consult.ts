import type { Callback } from './callbacks.js';

/** Answer of a program to a question about itself. */
export interface Consultation {
  readonly code: number | null;
  readonly stdout: string;
  /** Body of the first request that the program has sent to the callback of a trial; absent if it has sent none. */
  readonly request?: string;
}

/**
 * Runs the program briefly with these arguments and with `input` as its whole stdin, and returns its output when it
 * exits. With `isEnough`, stdin stays open: `isEnough` gets all output so far, ends the program by returning true, and
 * returns a text to write to stdin. With `file`, this text is stored in a private file, whose path replaces `filePlace`
 * in the arguments. With `trialEnv`, the program also ends when it has sent a request to the callback.
 */
export type Consult = (
  args: readonly string[],
  input?: string,
  isEnough?: (stdout: string) => boolean | string,
  file?: string,
  trialEnv?: TrialEnv,
) => Promise<Consultation>;

/**
 * Returns variables with which the program sends its requests to the callback instead of the model's API. The program
 * can then show what it would send, and spends no tokens.
 */
export type TrialEnv = (callback: Callback) => Readonly<Record<string, string>>;

export const filePlace = '{file}';
