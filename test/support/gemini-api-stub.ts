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
  /** Calls of tools, after the text. */
  readonly calls?: readonly GeminiCall[];
  readonly breaks?: boolean;
}

/** How the stub treats one request. */
export type GeminiBehaviour =
  | Saying
  | { readonly kind: 'refuses'; readonly status: number; readonly name: string; readonly message: string }
  | { readonly kind: 'stalls' };

/** What every answer claims to have used. */
export const geminiTokens = { input: 10, output: 7 } as const;

export function geminiSays(...deltas: readonly string[]): Saying {
  return { kind: 'says', deltas, pauseMs: 0 };
}

/** A pause before each delta. */
export function geminiSaysSlowly(pauseMs: number, ...deltas: readonly string[]): Saying {
  return { ...geminiSays(...deltas), pauseMs };
}

/** After these deltas the connection is cut. */
export function geminiBreaksAfter(...deltas: readonly string[]): Saying {
  return { ...geminiSays(...deltas), breaks: true };
}

/** Says this, then calls the tool that runs a command. */
export function geminiSaysAndRuns(text: string, command: string): Saying {
  return { ...geminiSays(text), calls: [{ name: 'run_shell_command', args: { command } }] };
}

/** Says this, then calls these tools. */
export function geminiCalls(text: string, ...calls: readonly GeminiCall[]): Saying {
  return { ...geminiSays(...(text === '' ? [] : [text])), calls };
}

/** Repeats the last user text, a few characters a delta. */
export function geminiEchoes(request: GenerateRequest): Saying {
  return geminiSays(...(lastSaidIn(request).match(/.{1,7}/gsu) ?? ['']));
}

/** Sends headers, then nothing. */
export const geminiStalls: GeminiBehaviour = { kind: 'stalls' };

/** The errors of the real API. */
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

/** A stub of the Gemini API on loopback. */
export class GeminiApi extends StubApi {
  readonly requests: GenerateRequest[] = [];
  /** Whatever else was asked for. */
  readonly strays: string[] = [];
  /** Decides about each request; `index` counts from 0. May be replaced at any time. */
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
  if (said.breaks) return void setTimeout(() => response.destroy(), 50); // what was written must get through first
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
  // Gemini's reader of such streams takes these for the end of a line.
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

/** A request's body, as far as the tests look into it. */
export interface GenerateBody {
  readonly contents: readonly { readonly role: string; readonly parts: readonly Part[] }[];
  readonly systemInstruction?: { readonly parts: readonly Part[] };
  readonly tools?: readonly { readonly functionDeclarations?: readonly FunctionDeclaration[] }[];
}

export interface GenerateRequest {
  readonly model: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: GenerateBody;
}

/** What the user and the model said, without what the CLI says of itself at the start. */
export function saidIn({ body }: GenerateRequest): { readonly role: string; readonly text: string }[] {
  return body.contents.flatMap(({ role, parts }) =>
    parts.flatMap(({ text = '' }) => (text.startsWith('<session_context>') ? [] : [{ role, text }])),
  );
}

export function lastSaidIn(request: GenerateRequest): string {
  return saidIn(request).findLast(({ role }) => role === 'user')?.text ?? '';
}

/** The tools that a request offers to the model. */
export function toolsIn({ body }: GenerateRequest): readonly FunctionDeclaration[] {
  return (body.tools ?? []).flatMap(({ functionDeclarations = [] }) => functionDeclarations);
}

/** The calls and their results, as the model is told of them. */
export function callsIn({ body }: GenerateRequest): readonly object[] {
  return body.contents.flatMap(({ parts }) =>
    parts.flatMap(({ functionCall, functionResponse }): readonly object[] => {
      if (functionCall !== undefined) return [{ name: functionCall.name, args: functionCall.args }];
      return functionResponse === undefined ? [] : [{ name: functionResponse.name, ...functionResponse.response }];
    }),
  );
}
