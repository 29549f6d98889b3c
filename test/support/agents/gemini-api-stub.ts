import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { listeningServer, StubApi } from './stub-api.js';

interface GeminiCall {
  readonly name: string;
  readonly args: unknown;
}

interface Saying {
  readonly kind: 'says';
  readonly deltas: readonly string[];
  readonly pauseMs: number;
  /** Tool calls after the text. */
  readonly calls?: readonly GeminiCall[];
  readonly breaks?: boolean;
}

/** Treatment of one request by the stub. */
export type GeminiBehaviour =
  | Saying
  | { readonly kind: 'refuses'; readonly status: number; readonly name: string; readonly message: string }
  | { readonly kind: 'stalls' };

/** Token usage in every answer. */
export const geminiTokens = { input: 10, output: 7 } as const;

export function geminiSays(...deltas: readonly string[]): Saying {
  return { kind: 'says', deltas, pauseMs: 0 };
}

/** Pauses before each delta. */
export function geminiSaysSlowly(pauseMs: number, ...deltas: readonly string[]): Saying {
  return { ...geminiSays(...deltas), pauseMs };
}

/** Cuts the connection after these deltas. */
export function geminiBreaksAfter(...deltas: readonly string[]): Saying {
  return { ...geminiSays(...deltas), breaks: true };
}

/** Sends this text, then calls the tool that runs a command. */
export function geminiSaysAndRuns(text: string, command: string): Saying {
  return { ...geminiSays(text), calls: [{ name: 'run_shell_command', args: { command } }] };
}

/** Sends this text, then calls these tools. */
export function geminiCalls(text: string, ...calls: readonly GeminiCall[]): Saying {
  return { ...geminiSays(...(text === '' ? [] : [text])), calls };
}

/** Repeats the last user text, a few characters per delta. */
export function geminiEchoes(request: GenerateRequest): Saying {
  return geminiSays(...(lastSaidIn(request).match(/.{1,7}/gsu) ?? ['']));
}

/** Sends headers, then no body. */
export const geminiStalls: GeminiBehaviour = { kind: 'stalls' };

/** Errors of the real API. */
export const geminiRefusals = {
  unauthorized: refuses(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.'),
  invalidKey: refuses(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.'),
  forbidden: refuses(403, 'PERMISSION_DENIED', 'The caller does not have permission'),
  modelUnknown: refuses(404, 'NOT_FOUND', 'models/gemini-of-tomorrow is not found for API version v1beta'),
  promptTooLong: refuses(
    400,
    'INVALID_ARGUMENT',
    'The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).',
  ),
  rateLimited: refuses(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota, please check your plan.'),
  overloaded: refuses(503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'),
  broken: refuses(500, 'INTERNAL', 'An internal error has occurred.'),
} as const;

function refuses(status: number, name: string, message: string): GeminiBehaviour {
  return { kind: 'refuses', status, name, message };
}

/** Stub of the Gemini API on loopback. */
export class GeminiApi extends StubApi {
  readonly requests: GenerateRequest[] = [];
  /** Requests for unknown paths. */
  readonly strays: string[] = [];
  /** Returns the treatment of each request; `index` counts from 0. Tests may replace it at any time. */
  behave: (request: GenerateRequest, index: number) => GeminiBehaviour = () => geminiSays('Hello', ', wor', 'ld');

  protected override async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const model = /\/models\/([^:]+):streamGenerateContent/.exec(request.url ?? '')?.[1];
    if (model === undefined) {
      this.strays.push(`${request.method} ${request.url}`);
      return void response.writeHead(404).end();
    }
    const received = { model, headers: request.headers, body: (await json(request)) as GenerateBody };
    const index = this.requests.push(received) - 1;
    await answer(response, model, this.behave(received, index));
  }
}

export async function startGeminiApi(): Promise<GeminiApi> {
  return new GeminiApi(await listeningServer());
}

async function answer(response: ServerResponse, model: string, behaviour: GeminiBehaviour): Promise<void> {
  if (behaviour.kind === 'refuses') {
    const { status: code, name: status, message } = behaviour;
    const body = JSON.stringify({ error: { code, message, status } });
    return void response.writeHead(code, { 'content-type': 'application/json' }).end(body);
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  if (behaviour.kind === 'says') await say(response, model, behaviour);
}

async function say(response: ServerResponse, model: string, said: Saying): Promise<void> {
  for (const text of said.deltas) {
    if (said.pauseMs > 0) await sleep(said.pauseMs);
    if (response.destroyed) return;
    response.write(eventOf(model, [{ text }]));
  }
  if (said.breaks) return void setTimeout(() => response.destroy(), 50); // time to deliver written data
  const last = (said.calls ?? []).map((functionCall) => ({ functionCall }));
  response.end(eventOf(model, last, 'STOP'));
}

function eventOf(model: string, parts: readonly object[], finishReason?: string): string {
  const { input: promptTokenCount, output: candidatesTokenCount } = geminiTokens;
  const usageMetadata = {
    promptTokenCount,
    candidatesTokenCount,
    totalTokenCount: promptTokenCount + candidatesTokenCount,
  };
  const candidates = [{ index: 0, content: { role: 'model', parts }, ...(finishReason && { finishReason }) }];
  const json = JSON.stringify({ candidates, usageMetadata, modelVersion: model });
  // Gemini's stream reader treats these characters as line ends.
  return `data: ${json.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}\r\n\r\n`;
}

interface Part {
  readonly text?: string;
  readonly functionCall?: GeminiCall;
  readonly functionResponse?: { readonly name: string; readonly response: Readonly<Record<string, unknown>> };
  readonly inlineData?: { readonly mimeType: string; readonly data: string };
}

interface FunctionDeclaration {
  readonly name: string;
  readonly description: string;
  readonly parametersJsonSchema: Readonly<Record<string, unknown>>;
}

/** Fields of a request body that tests check. */
interface GenerateBody {
  readonly contents: readonly { readonly role: string; readonly parts: readonly Part[] }[];
  readonly systemInstruction?: { readonly parts: readonly Part[] };
  readonly tools?: readonly { readonly functionDeclarations?: readonly FunctionDeclaration[] }[];
}

export interface GenerateRequest {
  readonly model: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: GenerateBody;
}

/** Returns the texts of the user and the model, without the CLI's introduction. */
export function saidIn({ body }: GenerateRequest): { readonly role: string; readonly text: string }[] {
  return body.contents.flatMap(({ role, parts }) =>
    parts.flatMap(({ text = '' }) => (text.startsWith('<session_context>') ? [] : [{ role, text }])),
  );
}

export function lastSaidIn(request: GenerateRequest): string {
  return saidIn(request).findLast(({ role }) => role === 'user')?.text ?? '';
}

/** Returns the tools that a request offers. */
export function toolsIn({ body }: GenerateRequest): readonly FunctionDeclaration[] {
  return (body.tools ?? []).flatMap(({ functionDeclarations = [] }) => functionDeclarations);
}

/** Returns the tool calls and their results in a request. */
export function callsIn({ body }: GenerateRequest): readonly object[] {
  return body.contents.flatMap(({ parts }) =>
    parts.flatMap(({ functionCall, functionResponse }): readonly object[] => {
      if (functionCall !== undefined) return [{ name: functionCall.name, args: functionCall.args }];
      return functionResponse === undefined ? [] : [{ name: functionResponse.name, ...functionResponse.response }];
    }),
  );
}
