import { z } from 'zod';
import type { Consult, Launch } from '../../contract/adapter.js';
import { jsonOf } from '../common/lines.js';
import { type ClaudeProfile, noSystem, offline } from './launch.js';
import { controlLine } from './queries.js';
import type { TellablePart } from './writer.js';

const trialModel = 'claude-of-the-trial';
const trialEffort: Launch['effort'] = 'low';

/** The last line is a message of the past: it starts no turn, but makes the program list its tools. */
const trialLines = [
  controlLine('1', { subtype: 'initialize', systemPrompt: 'A trial.', jsonSchema: { type: 'object', properties: {} } }),
  controlLine('2', { subtype: 'apply_flag_settings', settings: { model: trialModel, effortLevel: trialEffort } }),
  controlLine('3', { subtype: 'get_settings' }),
  controlLine('4', { subtype: 'get_context_usage', detail: 'summary' }),
  `${JSON.stringify({ type: 'user', message: { role: 'user', content: 'A trial.' }, shouldQuery: false })}\n`,
].join('');

/**
 * Finds out by trying what this version takes over stdin once it runs. No API can be reached meanwhile: some versions
 * would count the tokens of their context there. What shows no sign is not taken, and is decided at the start. Null where
 * the program gave no answer: it may on a host that is less busy.
 */
export async function findTellable(
  consult: Consult,
  profile: ClaudeProfile,
): Promise<ReadonlySet<TellablePart> | null> {
  const trial = await consult([...offline(profile), ...noSystem], trialLines).catch(() => null);
  if (trial === null) return null;
  const lines = trial.stdout.split('\n').map(jsonOf);
  const told = new Set(lines.flatMap(signsOf));
  if (lines.some(isTrace)) told.delete('model');
  return told;
}

/** The settings in force, and the tokens of each part of the context. A version that drops the system text counts none. */
const settings = z.object({ applied: z.object({ model: z.string(), effort: z.string().nullish() }) });
const contextUsage = z.object({ categories: z.array(z.object({ name: z.string(), tokens: z.number() })) });
const tools = z.object({ type: z.literal('system'), subtype: z.literal('init'), tools: z.array(z.string()) });
const response = z.object({
  type: z.literal('control_response'),
  response: z.object({ response: z.unknown().optional() }),
});

/** Older versions put a change of the model into the context, as a command of the user's. */
const trace = z.object({ type: z.literal('user'), message: z.object({ content: z.string().includes(trialModel) }) });

function isTrace(line: unknown): boolean {
  return trace.safeParse(line).success;
}

function signsOf(line: unknown): readonly TellablePart[] {
  if (tools.safeParse(line).data?.tools.includes('StructuredOutput')) return ['schema'];
  const answer = response.safeParse(line).data?.response.response;
  const { categories = [] } = contextUsage.safeParse(answer).data ?? {};
  if (categories.some(({ name, tokens }) => name === 'System prompt' && tokens > 0)) return ['system'];
  const { applied } = settings.safeParse(answer).data ?? {};
  return [
    ...(applied?.model === trialModel ? (['model'] as const) : []),
    ...(applied?.effort === trialEffort ? (['effort'] as const) : []),
  ];
}
