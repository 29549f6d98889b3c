import type { Capabilities, Turn } from '../../primary/cli/contract/adapter.js';
import { isDemand } from '../../primary/cli/contract/model-rules.js';
import { dropsTools, isEmulated } from '../../primary/cli/models.js';
import type { PrimaryPart } from '../../primary/features/feature.js';
import type { AnswerTurns, TranslateTurn } from '../../primary/jobs/answer-turns.js';
import type { StrategyEnd } from '../../primary/jobs/answered.js';
import { answerWith } from '../../primary/jobs/structured.js';
import type { ModelCapabilities } from '../../shared/api/models.js';
import type { Config } from '../../shared/config/config.js';
import { invalid } from '../../shared/errors.js';
import type { JobRequest } from '../../shared/job.js';
import { withoutTools } from './calls-as-text.js';
import { demandedTurns } from './demanded-calls.js';
import { answerWithEmulatedTools } from './emulated-tools.js';
import { ProgramTools } from './program-tools.js';
import { strictTurns } from './strict-tools.js';

/** Returns the hooks for requests with tools and sampling parameters of the client. */
export function createDoors({
  config: { tools, sampling },
}: {
  readonly config: Pick<Config, 'tools' | 'sampling'>;
}): PrimaryPart {
  const translate: TranslateTurn = (offer, pass) => new ProgramTools(offer, pass);
  const check = ({ offer }: JobRequest) => {
    if (offer !== undefined && tools === 'off') throw invalid('tools', 'are switched off here (MODEL_API_TOOLS=off)');
  };
  return {
    job: { check, answer: answerWithTools, translate },
    modelCapabilities: (extras) => ({
      ...(tools === 'on' && toolAbilities(extras)),
      sampling: sampling === 'on' && extras.wishes?.includes('temperature') === true,
    }),
    handlers: {},
  };
}

function toolAbilities({ tools }: Capabilities): Pick<ModelCapabilities, 'tools' | 'parallel_tools'> {
  return { tools: tools === undefined ? 'emulated' : 'native', parallel_tools: tools === 'parallel' };
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
