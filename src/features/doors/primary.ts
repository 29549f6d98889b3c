import type { Turn } from '../../primary/cli/contract/adapter.js';
import { isDemand } from '../../primary/cli/contract/model-rules.js';
import { dropsTools, isEmulated } from '../../primary/cli/models.js';
import type { PrimaryPart } from '../../primary/features/feature.js';
import type { AnswerTurns, TranslateTurn } from '../../primary/jobs/answer-turns.js';
import type { StrategyEnd } from '../../primary/jobs/answered.js';
import { answerWith } from '../../primary/jobs/structured.js';
import { withoutTools } from './calls-as-text.js';
import { demandedTurns } from './demanded-calls.js';
import { answerWithEmulatedTools } from './emulated-tools.js';
import { ProgramTools } from './program-tools.js';
import { strictTurns } from './strict-tools.js';

/** Returns the hooks for requests with tools of the client. */
export function createDoors(): PrimaryPart {
  const translate: TranslateTurn = (offer, pass) => new ProgramTools(offer, pass);
  return { job: { answer: answerWithTools, translate }, handlers: {} };
}

/** Lets the model answer with tools: with those of its program, or with emulated ones. */
function answerWithTools(turns: AnswerTurns, turn: Turn): Promise<StrategyEnd> | null {
  const { offer } = turns.job.request;
  if (offer === undefined) return null;
  if (isEmulated(turns.extras, offer)) return answerWithEmulatedTools(turns, turn, offer);
  if (dropsTools(turns.extras, offer)) return answerWith(turns, withoutTools(turn), turns.run);
  const checked = offer.tools.some((tool) => tool.isStrict) ? strictTurns(turns) : turns.run;
  const isDemanded = isDemand(offer) && turn.withheld?.includes('tool_choice') === true;
  return answerWith(turns, turn, isDemanded ? demandedTurns(turns, checked, offer) : checked);
}
