import { schemaText } from '../../shared/api/ask.js';
import { chained, chainStart } from '../../shared/chain.js';
import { invalid } from '../../shared/errors.js';
import type { Effort, Image, JobRequest, Message, Operation } from '../../shared/job.js';
import type { Primary, Reply } from '../http/exchange.js';

/** A JSON Schema, and where it stands in the request. */
export interface OrderedSchema {
  readonly path: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** What a request body asks for. What is left out is not wanted. */
export interface JobOrder {
  readonly operation: Operation;
  readonly conversationId?: string | undefined;
  readonly text: string;
  readonly images?: readonly Image[] | undefined;
  readonly system?: string | undefined;
  readonly model?: string | undefined;
  readonly schema?: OrderedSchema | undefined;
  readonly effort?: Effort | undefined;
  /** Whether the job is refused where there is no effort. */
  readonly isEffortNeeded: boolean;
  readonly stop?: readonly string[] | undefined;
  /** From a caller that keeps the conversation: what was said before. */
  readonly history?: readonly Message[] | undefined;
  readonly stream: boolean;
}

/** The job that this orders. Throws `validation_error` for a schema that is none. */
export async function requestOf(order: JobOrder, primary: Primary, res: Reply): Promise<JobRequest> {
  const { operation, text, images = [], stop = [], history, stream: isStreamed, isEffortNeeded } = order;
  const { conversationId = null, system = null, model = null, effort = null } = order;
  const { requestId, client } = res.locals;
  const schema = order.schema === undefined ? null : await checkedSchema(order.schema, primary, client);
  const chain = history === undefined ? null : chainOf(history, { role: 'user', text, images }, system, schema);
  const asked = { operation, conversationId, text, images, system, model, schema, effort, isEffortNeeded, stop };
  return { ...asked, history: history ?? [], chain, requestId, client, isStreamed };
}

async function checkedSchema({ value, path }: OrderedSchema, primary: Primary, client: string): Promise<string> {
  const schema = schemaText(value, path);
  const { fault } = await primary.call('schemaFault', { schema, client });
  if (fault !== null) throw invalid(path, `is not a JSON Schema: ${fault}`);
  return schema;
}

function chainOf(
  history: readonly Message[],
  asked: Message,
  system: string | null,
  schema: string | null,
): JobRequest['chain'] {
  const before = history.reduce(chained, chainStart(system, schema));
  return { before, asked: chained(before, asked) };
}
