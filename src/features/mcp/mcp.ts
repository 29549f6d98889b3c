import type { Request } from 'express';
import type { z } from 'zod';
import { cached } from '../../shared/async.js';
import { check, readBody } from '../../worker/http/body.js';
import type { AsyncHandler, Reply } from '../../worker/http/exchange.js';
import { sendBody, sendJson, sendRecorded, untilGone } from '../../worker/http/responses.js';
import { ownRequest, type RequestedJob } from '../../worker/jobs/job-request.js';
import { answerWithJob, type JobParts } from '../../worker/jobs/run-job.js';
import { formOf, jobCalls, leaveJob, storedBody } from '../background/answers.js';
import {
  callParams,
  errorForm,
  handshakeVersions,
  initializeParams,
  message,
  type Params,
  ProtocolError,
  type RequestId,
  resultWrapper,
  rpcCodes,
  supportedVersions,
  type WrapResult,
} from './messages.js';
import { acceptedResult, askFormat, jobResult, succeededResult, toolErrorForm, valueResult } from './results.js';
import { askArguments, jobArguments, listedTools, modelsArguments, type ToolName, toolNames } from './tools.js';
import { isStateless } from './versions.js';

/**
 * Returns the stateless server of the Model Context Protocol: each request is independent. The SDK of the protocol is
 * not used, because it holds whole answers in memory (docs/decisions/0033-mcp-without-its-sdk.md).
 */
export function postMcp(parts: JobParts, beforeJob: readonly AsyncHandler[]): AsyncHandler {
  const tools = listedTools();
  const serverInfo = cached(() => readServerInfo(parts), Number.POSITIVE_INFINITY, parts.clock);
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, message);
    const { id, method, params } = body;
    if (id !== undefined) res.locals.errorForm = errorForm(id);
    const isStatelessClient = isStateless(req, body);
    // A notification or a response of the client requires no response.
    if (id === undefined || method === undefined) return void res.status(202).end();
    const wrapResult = resultWrapper(id, isStatelessClient ? await serverInfo() : null);
    const sendResult = (result: object) => sendJson(res, wrapResult(result));
    if (method === 'tools/call') return callTool({ parts, beforeJob, req, res, wrapResult }, id, params);
    if (method === 'tools/list') return sendResult({ tools, ...(isStatelessClient && cacheHints) });
    if (isStatelessClient) {
      if (method === 'server/discover') return sendResult(discovery);
      throw methodNotFound('server/discover, tools/list and tools/call', 404);
    }
    if (method === 'ping') return sendResult({});
    if (method === 'initialize') return sendResult({ ...initializeResult(params), serverInfo: await serverInfo() });
    throw methodNotFound('initialize, ping, tools/list and tools/call', 200);
  };
}

function methodNotFound(methods: string, status: 200 | 404): ProtocolError {
  return new ProtocolError(rpcCodes.methodNotFound, `unknown method; this server supports ${methods}`, status);
}

const instructions =
  'Sends prompts to the models of this machine. A call of `ask` may wait in a queue. With `background`, it returns the id of a job at once.';

const capabilities = { tools: {} };

function initializeResult(params: Params): object {
  const { protocolVersion: requested } = checkParams(params, initializeParams);
  const protocolVersion = handshakeVersions.find((version) => version === requested) ?? handshakeVersions[0];
  return { protocolVersion, capabilities, instructions };
}

/** Caching fields of results that are equal for all clients until the service is updated. */
const cacheHints = { ttlMs: 60_000, cacheScope: 'public' };

const discovery = { supportedVersions, capabilities, instructions, ...cacheHints };

async function readServerInfo({ primary }: Pick<JobParts, 'primary'>): Promise<object> {
  const { version } = await primary.call('version', {});
  return { name: 'prompt-relay', version };
}

function checkParams<T>(params: Params, schema: z.ZodType<T>): T {
  try {
    return check(params ?? {}, schema);
  } catch (error) {
    throw new ProtocolError(rpcCodes.invalidParams, (error as Error).message);
  }
}

/** Call of a tool, with the handlers that a job must pass before it runs. */
interface McpToolCall {
  readonly parts: JobParts;
  readonly beforeJob: readonly AsyncHandler[];
  readonly req: Request;
  readonly res: Reply;
  readonly wrapResult: WrapResult;
}

async function callTool(call: McpToolCall, id: RequestId, params: Params): Promise<void> {
  const { name, arguments: sent = {}, _meta: meta } = checkParams(params, callParams);
  const args = Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== null)); // null means missing
  const tool = toolNames.find((known) => known === name);
  call.res.locals.errorForm = toolErrorForm(id, call.wrapResult, call.res);
  if (tool === undefined) {
    throw new ProtocolError(rpcCodes.invalidParams, `unknown tool; this server has ${toolNames.join(', ')}`);
  }
  await toolRunners[tool](call, args, meta?.progressToken);
}

/** Functions that run a tool and send its result. */
const toolRunners: Readonly<
  Record<ToolName, (call: McpToolCall, args: unknown, progressToken: RequestId | undefined) => Promise<void>>
> = { ask: runAsk, models: runModels, job: runJob };

async function runAsk(
  { parts, beforeJob, req, res, wrapResult }: McpToolCall,
  args: unknown,
  token: RequestId | undefined,
): Promise<void> {
  for (const handler of beforeJob) await handler(req, res, () => {});
  const { prompt: text, system, model, schema: value, background = false } = check(args, askArguments);
  const schema = value && { path: 'schema', value };
  const stream = token !== undefined && acceptsEvents(req);
  const job: RequestedJob = { operation: 'ask', text, system, model, schema, isEffortNeeded: true, stream };
  if (!background) return answerWithJob(parts, res, ownRequest(job), askFormat(wrapResult, token, parts.clock));
  await leaveJob(parts, res, job, { route: '/ask', model: null }, (accepted) =>
    sendRecorded(res, JSON.stringify(wrapResult(acceptedResult(accepted)))),
  );
}

async function runModels({ parts, res, wrapResult }: McpToolCall, args: unknown): Promise<void> {
  check(args, modelsArguments);
  const { models } = await parts.primary.call('models', {});
  sendJson(res, wrapResult(valueResult({ models })));
}

async function runJob({ parts: { primary }, res, wrapResult }: McpToolCall, args: unknown): Promise<void> {
  const { client } = res.locals;
  const { job_id, cancel = false } = check(args, jobArguments);
  using caller = untilGone(res);
  const job = await jobCalls(primary).call(cancel ? 'cancelJob' : 'job', { id: job_id, client });
  formOf(job);
  if (job.status !== 'succeeded') return sendJson(res, wrapResult(jobResult(job)));
  const body = await storedBody(primary, job, client, (answer) =>
    JSON.stringify(wrapResult(succeededResult(job, answer))),
  );
  await sendBody(res, body, caller.signal);
}

function acceptsEvents(req: Request): boolean {
  return /\btext\/event-stream\b/i.test(req.get('accept') ?? '');
}
