import type { Request } from 'express';
import type { z } from 'zod';
import { check, readBody } from '../http/body.js';
import type { AsyncHandler, Reply } from '../http/exchange.js';
import { sendBody, sendJson, sendRecorded, untilGone } from '../http/responses.js';
import { formOf, leaveJob, storedBody } from '../jobs/background.js';
import { ownRequest, type RequestedJob } from '../jobs/job-request.js';
import { answerWithJob, type JobParts } from '../jobs/run-job.js';
import {
  answerOf,
  callParams,
  greetingVersions,
  initializeParams,
  message,
  metaKeys,
  type Params,
  type RequestId,
  refusalOf,
  rpcErrors,
  statelessVersions,
  WrongCall,
} from './messages.js';
import { acceptedResult, askFormat, jobResult, succeededResult, toolErrors, valueResult } from './results.js';
import { askArguments, jobArguments, listedTools, modelsArguments, toolNames } from './tools.js';
import { checkVersion } from './versions.js';

const methods = 'initialize, server/discover, ping, tools/list and tools/call';

/** The server of the Model Context Protocol. Each request stands for itself: there are no sessions. */
export function postMcp(parts: JobParts, beforeJob: readonly AsyncHandler[]): AsyncHandler {
  const tools = listedTools();
  return async (req, res) => {
    const { id, method, params } = await readBody(req, res, parts.bodies, message);
    if (id !== undefined) res.locals.errorForm = refusalOf(id);
    if (method !== 'initialize') checkVersion(req, method, params);
    if (id === undefined || method === undefined) return void res.status(202).end(); // asks for nothing
    switch (method) {
      case 'initialize':
        return sendJson(res, answerOf(id, await greeting(parts, params)));
      case 'server/discover':
        return sendJson(res, answerOf(id, await discovery(parts)));
      case 'ping':
        return sendJson(res, answerOf(id, {}));
      case 'tools/list':
        return sendJson(res, answerOf(id, { tools, ...cacheable }));
      case 'tools/call':
        return callTool(new McpCall(parts, beforeJob, req, res, id), params);
      default:
        throw new WrongCall(rpcErrors.unknownMethod, `no such method: this server has ${methods}`);
    }
  };
}

const instructions =
  'Answers prompts with the models of this machine. A call of `ask` is a job that may wait for its turn; with `background` it continues without its caller.';

async function greeting(parts: Pick<JobParts, 'primary'>, params: Params): Promise<object> {
  const { protocolVersion: wanted } = paramsOf(params, initializeParams);
  const protocolVersion = greetingVersions.find((known) => known === wanted) ?? greetingVersions[0];
  return { protocolVersion, capabilities, serverInfo: await serverInfo(parts), instructions };
}

async function discovery(parts: Pick<JobParts, 'primary'>): Promise<object> {
  const server = { [metaKeys.server]: await serverInfo(parts) };
  return { supportedVersions: statelessVersions, capabilities, instructions, ...cacheable, _meta: server };
}

const capabilities = { tools: {} };

/** The same for every client, as long as this version runs. */
const cacheable = { ttlMs: 60_000, cacheScope: 'public' };

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
  const sent = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)); // as if it were missing
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

/** One call of a tool. */
class McpCall {
  readonly #parts: JobParts;
  readonly #beforeJob: readonly AsyncHandler[];
  readonly #req: Request;
  readonly #res: Reply;
  readonly #id: RequestId;

  constructor(parts: JobParts, beforeJob: readonly AsyncHandler[], req: Request, res: Reply, id: RequestId) {
    this.#parts = parts;
    this.#beforeJob = beforeJob;
    this.#req = req;
    this.#res = res;
    this.#id = id;
  }

  /** From here on, what goes wrong is the result of the call. */
  answerErrors(): void {
    this.#res.locals.errorForm = toolErrors(this.#id, this.#res);
  }

  async ask(sent: unknown, token: RequestId | undefined): Promise<void> {
    const [id, res, { primary, clock }] = [this.#id, this.#res, this.#parts];
    for (const passes of this.#beforeJob) await passes(this.#req, res, () => {});
    const { prompt: text, system, model, schema: value, background = false } = check(sent, askArguments);
    const schema = value && { path: 'schema', value };
    const stream = token !== undefined && takesEvents(this.#req);
    const job: RequestedJob = { operation: 'ask', text, system, model, schema, isEffortNeeded: true, stream };
    if (!background) return answerWithJob(this.#parts, res, ownRequest(job), askFormat(id, token, clock));
    await leaveJob(primary, res, job, { route: '/ask', model: null }, (accepted) =>
      sendRecorded(res, JSON.stringify(answerOf(id, acceptedResult(accepted)))),
    );
  }

  async models(sent: unknown): Promise<void> {
    check(sent, modelsArguments);
    const { models } = await this.#parts.primary.call('models', {});
    sendJson(this.#res, answerOf(this.#id, valueResult({ models })));
  }

  async job(sent: unknown): Promise<void> {
    const [id, res, { primary }] = [this.#id, this.#res, this.#parts];
    const { job_id, cancel = false } = check(sent, jobArguments);
    const { client } = res.locals;
    using caller = untilGone(res);
    const job = await primary.call(cancel ? 'cancelJob' : 'job', { id: job_id, client });
    formOf(job);
    if (job.status !== 'succeeded') return sendJson(res, answerOf(id, jobResult(job)));
    const body = await storedBody(primary, job, client, (answer) =>
      JSON.stringify(answerOf(id, succeededResult(job, answer))),
    );
    await sendBody(res, body, caller.signal);
  }
}

function takesEvents(req: Request): boolean {
  return /\btext\/event-stream\b/i.test(req.get('accept') ?? '');
}
