import type { Request } from 'express';
import { schemaText } from '../../shared/api/ask.js';
import type { AcceptedBody } from '../../shared/api/jobs.js';
import type { AcceptedView, JobForm } from '../../shared/background.js';
import { chained, chainStart } from '../../shared/chain.js';
import { timestamp } from '../../shared/clock.js';
import { invalid } from '../../shared/errors.js';
import type { Effort, Image, JobRequest, Message, Operation } from '../../shared/job.js';
import type { Primary, Reply } from '../http/exchange.js';
import { sendRecorded } from '../http/responses.js';
import type { AnswerManner } from '../http/sent-answer.js';

/** A JSON Schema, and where it stands in the request. */
export interface RequestedSchema {
  readonly path: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** What a request body asks for. What is left out is not wanted. */
export interface RequestedJob {
  readonly operation: Operation;
  readonly conversationId?: string | undefined;
  readonly text: string;
  readonly images?: readonly Image[] | undefined;
  readonly system?: string | undefined;
  readonly model?: string | undefined;
  readonly schema?: RequestedSchema | undefined;
  readonly effort?: Effort | undefined;
  /** Whether the job is refused where there is no effort. */
  readonly isEffortNeeded: boolean;
  readonly stop?: readonly string[] | undefined;
  /** From a caller that keeps the conversation: what was said before. */
  readonly history?: readonly Message[] | undefined;
  readonly stream: boolean;
}

/** The job that is requested. Throws `validation_error` for a schema that cannot be used. */
export async function requestOf(job: RequestedJob, primary: Primary, res: Reply): Promise<JobRequest> {
  const { operation, text, images = [], stop = [], history, stream: isStreamed, isEffortNeeded } = job;
  const { conversationId = null, system = null, model = null, effort = null } = job;
  const { requestId, client } = res.locals;
  const schema = job.schema === undefined ? null : await checkedSchema(job.schema, primary, client);
  const chain = history === undefined ? null : chainOf(history, { role: 'user', text, images }, system, schema);
  const asked = { operation, conversationId, text, images, system, model, schema, effort, isEffortNeeded, stop };
  return { ...asked, history: history ?? [], chain, requestId, client, isStreamed };
}

async function checkedSchema({ value, path }: RequestedSchema, primary: Primary, client: string): Promise<string> {
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

/** Answers once for each key; a request without one is always answered. */
export async function onceIn(res: Reply, manner: AnswerManner, answer: () => Promise<void>): Promise<void> {
  const { idempotent } = res.locals;
  await (idempotent === null ? answer() : idempotent.once(manner, answer));
}

/** Whether the caller would rather not wait for the answer (RFC 7240). There, an empty value is none. */
export function prefersAsync(req: Pick<Request, 'get'>): boolean {
  const strings = /"(?:\\.?|[^"\\])*(?:"|$)/g;
  const unquoted = (req.get('prefer') ?? '').replace(strings, (text) => (text === '""' ? '' : 'string'));
  return unquoted.split(',').some((preference) => /^\s*respond-async\s*(=\s*)?(;|$)/i.test(preference));
}

/** Leaves the job to the primary, and answers with where to ask for it. `more`: further fields, in the form of an SDK's API. */
export async function acceptJob(
  primary: Primary,
  res: Reply,
  requested: RequestedJob,
  form: Omit<JobForm, 'isStructured'>,
  more: (accepted: AcceptedView) => object = () => ({}),
): Promise<void> {
  const job = await requestOf({ ...requested, stream: true }, primary, res);
  await onceIn(res, 'background', async () => {
    const accepted = await primary.call('accept', { job, form: { ...form, isStructured: job.schema !== null } });
    const body: AcceptedBody = {
      job_id: accepted.id,
      status: 'queued',
      created_at: timestamp(accepted.createdAt),
      durable: accepted.isDurable,
      request_id: res.locals.requestId,
    };
    res.set({ 'Preference-Applied': 'respond-async', Location: `/jobs/${accepted.id}` });
    await sendRecorded(res, JSON.stringify({ ...body, ...more(accepted) }), 202);
  });
}
