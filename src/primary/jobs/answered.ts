import type { AddedMessage, Citation, CitingBlock, PlacedSearch, Thought, TokenEstimate } from '../../shared/job.js';
import type { OptionalWish, TurnEnd } from '../cli/contract/adapter.js';

/** End of a strategy. `text` is the whole answer if it differs from the streamed text; otherwise null. */
export interface StrategyEnd extends TurnEnd {
  readonly stopSequence: string | null;
  /** Whether the process waits for the results of its calls. */
  readonly isWaiting: boolean;
  /** Whether the service cut or repaired the answer: the process then has a different history than the client. */
  readonly isCut: boolean;
}

/** End of a job's answer. */
export interface Answered extends StrategyEnd {
  /** Requested options that the model has refused. */
  readonly ignores?: readonly OptionalWish[];
  readonly estimate: TokenEstimate | null;
  /** Thoughts in the form that the caller requested. */
  readonly thoughts?: readonly Thought[];
  readonly searches?: readonly PlacedSearch[];
  readonly citations?: readonly Citation[];
  readonly blocks?: readonly CitingBlock[];
  /** Messages that the model has got during its answer, for a job without a stored conversation. */
  readonly additions?: readonly AddedMessage[];
}
