import { z } from 'zod';
import type { Consult, ModelEntry } from '../../contract/adapter.js';
import { type RpcId, rpcMessage, rpcRequest } from '../common/json-rpc.js';
import { openingLines } from './thread.js';

/** What the program is asked about itself, outside of turns, and what it answers. */
export interface CodexQuery {
  readonly method: string;
  readonly params: unknown;
}

export const configQuery: CodexQuery = { method: 'config/read', params: {} };
export const accountQuery: CodexQuery = { method: 'account/read', params: {} };
export const modelsQuery: CodexQuery = { method: 'model/list', params: { limit: 100 } };

/** The answers, in the order of the questions; undefined where the program refused to answer. No API is asked. */
export async function codexAnswers(
  consult: Consult,
  args: readonly string[],
  catalog: string,
  queries: readonly CodexQuery[],
): Promise<readonly unknown[]> {
  const lines = queries.map(({ method, params }, index) => rpcRequest(`query-${index}`, method, params));
  const isEnough = (stdout: string) => queries.every((_, index) => answersIn(stdout).has(`query-${index}`));
  const { stdout } = await consult(['app-server', ...args], openingLines + lines.join(''), isEnough, catalog);
  const answers = answersIn(stdout);
  return queries.map((_, index) => answers.get(`query-${index}`));
}

function answersIn(stdout: string): ReadonlyMap<RpcId | null, unknown> {
  const answers = new Map<RpcId | null, unknown>();
  for (const line of stdout.split('\n')) {
    const message = rpcMessage(line);
    if (message?.type === 'result') answers.set(message.id, message.result);
    else if (message?.type === 'error') answers.set(message.id, undefined);
  }
  return answers;
}

/** An API that needs no login of OpenAI has a model list of its own. */
export const accountState = z.object({ account: z.unknown(), requiresOpenaiAuth: z.boolean() });

const listed = z.object({
  model: z.string(),
  displayName: z.string(),
  description: z.string().catch(''),
  isDefault: z.boolean().catch(false),
  inputModalities: z.array(z.string()).nullish().catch(null),
  supportedReasoningEfforts: z.array(z.unknown()).nullish().catch(null),
});
export const modelList = z.object({ data: z.array(listed) });

export function entryOf({ model, displayName, description, isDefault, ...told }: z.infer<typeof listed>): ModelEntry {
  const { inputModalities: modalities, supportedReasoningEfforts: efforts } = told;
  const capabilities = { images: modalities?.includes('image') ?? true, effort: efforts?.length !== 0 };
  return { id: model, name: displayName, default: isDefault, capabilities, ...(description !== '' && { description }) };
}
