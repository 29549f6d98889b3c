import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { listeningServer, StubApi } from './stub-api.js';

interface CompletionsBody {
  readonly model: string;
  readonly messages: readonly {
    readonly role: string;
    readonly content: string | readonly { readonly text?: string }[];
  }[];
  readonly tools?: readonly unknown[];
}

/** Token usage in every answer. */
export const completionTokens = { input: 10, output: 7 } as const;

interface StubCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Stub of a chat completions API on loopback that answers everything with a greeting. */
export class CompletionsApi extends StubApi {
  readonly requests: CompletionsBody[] = [];
  /** Headers of the requests, in the same order. */
  readonly headers: IncomingHttpHeaders[] = [];
  /** Tool that the answer to the first request of each conversation calls. */
  toolCall: { readonly name: string; readonly arguments: string } | null = null;
  /** Calls in the answer to the next request, after a text. */
  calls: readonly StubCall[] = [];
  /** HTTP status of the answers; 200 for the greeting. */
  status = 200;

  override get url(): string {
    return `${super.url}/v1`;
  }

  /** Text of the last message in the last request. */
  get lastSaid(): string {
    const content = this.requests.at(-1)?.messages.at(-1)?.content ?? '';
    return typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('');
  }

  protected override async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const received = (await json(request)) as CompletionsBody;
    this.requests.push(received);
    this.headers.push(request.headers);
    if (this.status !== 200) {
      const error = { message: `the stub refuses with ${this.status}`, type: 'error_of_the_stub', code: this.status };
      return void response
        .writeHead(this.status, { 'content-type': 'application/json' })
        .end(JSON.stringify({ error }));
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (this.toolCall !== null && received.messages.every(({ role }) => role !== 'tool')) {
      const call = { index: 0, id: 'call-1', type: 'function', function: this.toolCall };
      response.write(eventOf({ delta: { role: 'assistant', tool_calls: [call] } }));
      return void response.end(`${eventOf({ delta: {}, finish_reason: 'tool_calls' })}data: [DONE]\n\n`);
    }
    const calls = this.calls.map(({ id, ...call }, index) => ({ index, id, type: 'function', function: call }));
    this.calls = [];
    if (calls.length > 0) {
      response.write(eventOf({ delta: { role: 'assistant', content: 'Well.', tool_calls: calls } }));
      return void response.end(`${eventOf({ delta: {}, finish_reason: 'tool_calls' })}data: [DONE]\n\n`);
    }
    for (const content of ['Hello', ', wor', 'ld']) response.write(eventOf({ delta: { role: 'assistant', content } }));
    const { input: prompt_tokens, output: completion_tokens } = completionTokens;
    const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
    response.end(`${eventOf({ delta: {}, finish_reason: 'stop' }, usage)}data: [DONE]\n\n`);
  }
}

export async function startCompletionsApi(): Promise<CompletionsApi> {
  return new CompletionsApi(await listeningServer());
}

function eventOf(choice: object, usage?: object): string {
  const head = { id: 'completion-1', object: 'chat.completion.chunk', created: 1, model: 'model-of-the-stub' };
  const choices = [{ index: 0, finish_reason: null, ...choice }];
  return `data: ${JSON.stringify({ ...head, choices, ...(usage && { usage }) })}\n\n`;
}
