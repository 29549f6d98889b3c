import type { Request } from 'express';
import type { z } from 'zod';
import { cached } from '../../shared/async.js';
import { check, readBody } from '../http/body.js';
import type { AsyncHandler, Reply } from '../http/exchange.js';
import { sendBody, sendJson, sendRecorded, untilGone } from '../http/responses.js';
import { formOf, leaveJob, storedBody } from '../jobs/background.js';
import { ownRequest, type RequestedJob } from '../jobs/job-request.js';
import { answerWithJob, type JobParts } from '../jobs/run-job.js';
import {
  answersTo,
  callParams,
  greetingVersions,
  initializeParams,
  message,
  type Params,
  type RequestId,
  refusalOf,
  rpcErrors,
  supportedVersions,
  type WriteAnswer,
  WrongCall,
} from './messages.js';
import { acceptedResult, askFormat, jobResult, succeededResult, toolErrors, valueResult } from './results.js';
import { askArguments, jobArguments, listedTools, modelsArguments, toolNames } from './tools.js';
import { isStateless } from './versions.js';

/** Server of the Model Context Protocol, without sessions: each request is independent. */
export function postMcp(parts: JobParts, beforeJob: readonly AsyncHandler[]): AsyncHandler {
  const tools = listedTools();
  const server = cached(() => serverInfo(parts), Number.POSITIVE_INFINITY, parts.clock);
  return async (req, res) => {
    const sent = await readBody(req, res, parts.bodies, message);
    const { id, method, params } = sent;
    if (id !== undefined) res.locals.errorForm = refusalOf(id);
    const greetsNobody = isStateless(req, sent);
    if (id === undefined || method === undefined) return void res.status(202).end(); // requires no answer
    const answer = answersTo(id, greetsNobody ? await server() : null);
    if (method === 'tools/call') return callTool(new McpCall(parts, beforeJob, req, res, id, answer), params);
    if (method === 'tools/list') return sendJson(res, answer({ tools, ...(greetsNobody && cacheable) }));
    if (greetsNobody) {
      if (method === 'server/discover') return sendJson(res, answer(discovery));
      throw unknownMethod('server/discover, tools/list and tools/call', 404);
    }
    if (method === 'ping') return sendJson(res, answer({}));
    if (method === 'initialize') return sendJson(res, answer({ ...greeting(params), serverInfo: await server() }));
    throw unknownMethod('initialize, ping, tools/list and tools/call', 200);
  };
}

function unknownMethod(methods: string, status: 200 | 404): WrongCall {
  return new WrongCall(rpcErrors.unknownMethod, `no such method: this server has ${methods}`, status);
}

const instructions =
  'Answers prompts with the models of this machine. A call of `ask` is a job that may wait for its turn; with `background` it continues without its caller.';

function greeting(params: Params): object {
  const { protocolVersion: wanted } = paramsOf(params, initializeParams);
  const protocolVersion = greetingVersions.find((known) => known === wanted) ?? greetingVersions[0];
  return { protocolVersion, capabilities, instructions };
}

const capabilities = { tools: {} };

/** Caching fields of results that are equal for all clients while this version of the service runs. */
const cacheable = { ttlMs: 60_000, cacheScope: 'public' };

const discovery = { supportedVersions, capabilities, instructions, ...cacheable };

async function serverInfo({ primary }: Pick<JobParts, 'primary'>): Promise<object> {
  const { version } = await primary.call('version', {});
  return { name: 'prompt-relay', version };
}

function paramsOf<T>(params: Params, schema: z.ZodType<T>): T {
  try {
    return check(params ?? {}, schema);
  } catch (error) {
    throw new WrongCall(rpcErrors.wrongParams, (error as Error).message);
  }
}

async function callTool(call: McpCall, params: Params): Promise<void> {
  const { name, arguments: given = {}, _meta: meta } = paramsOf(params, callParams);
  const sent = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)); // null means missing
  call.answerErrors();
  switch (name) {
    case 'ask':
      return call.ask(sent, meta?.progressToken);
    case 'models':
      return call.models(sent);
    case 'job':
      return call.job(sent);
    default:
      throw new WrongCall(rpcErrors.wrongParams, `no such tool: there are ${toolNames.join(', ')}`);
  }
}

/** One call of a tool. Each method runs a tool and sends its result. */
class McpCall {
  readonly #parts: JobParts;
  readonly #beforeJob: readonly AsyncHandler[];
  readonly #req: Request;
  readonly #res: Reply;
  readonly #id: RequestId;
  readonly #answer: WriteAnswer;

  constructor(
    parts: JobParts,
    beforeJob: readonly AsyncHandler[],
    req: Request,
    res: Reply,
    id: RequestId,
    answer: WriteAnswer,
  ) {
    this.#parts = parts;
    this.#beforeJob = beforeJob;
    this.#req = req;
    this.#res = res;
    this.#id = id;
    this.#answer = answer;
  }

  /** Sends later errors in the form of a tool call (`toolErrors`). */
  answerErrors(): void {
    this.#res.locals.errorForm = toolErrors(this.#id, this.#answer, this.#res);
  }

  async ask(sent: unknown, token: RequestId | undefined): Promise<void> {
    const [answer, res, { primary, clock }] = [this.#answer, this.#res, this.#parts];
    for (const passes of this.#beforeJob) await passes(this.#req, res, () => {});
    const { prompt: text, system, model, schema: value, background = false } = check(sent, askArguments);
    const schema = value && { path: 'schema', value };
    const stream = token !== undefined && takesEvents(this.#req);
    const job: RequestedJob = { operation: 'ask', text, system, model, schema, isEffortNeeded: true, stream };
    if (!background) return answerWithJob(this.#parts, res, ownRequest(job), askFormat(answer, token, clock));
    await leaveJob(primary, res, job, { route: '/ask', model: null }, (accepted) =>
      sendRecorded(res, JSON.stringify(answer(acceptedResult(accepted)))),
    );
  }

  async models(sent: unknown): Promise<void> {
    check(sent, modelsArguments);
    const { models } = await this.#parts.primary.call('models', {});
    sendJson(this.#res, this.#answer(valueResult({ models })));
  }

  async job(sent: unknown): Promise<void> {
    const [answer, res, { primary }] = [this.#answer, this.#res, this.#parts];
    const { job_id, cancel = false } = check(sent, jobArguments);
    const { client } = res.locals;
    using caller = untilGone(res);
    const job = await primary.call(cancel ? 'cancelJob' : 'job', { id: job_id, client });
    formOf(job);
    if (job.status !== 'succeeded') return sendJson(res, answer(jobResult(job)));
    const body = await storedBody(primary, job, client, (completed) =>
      JSON.stringify(answer(succeededResult(job, completed))),
    );
    await sendBody(res, body, caller.signal);
  }
}

function takesEvents(req: Request): boolean {
  return /\btext\/event-stream\b/i.test(req.get('accept') ?? '');
}
