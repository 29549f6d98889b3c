import { acpAdapter } from '../../../src/features/acp/adapter.js';
import type { AcpPreset, GivenVariables } from '../../../src/features/acp/presets.js';
import {
  type DecoderEvent,
  type ProgramVersion,
  type Protocol,
  plainLaunch,
  type Turn,
} from '../../../src/primary/cli/contract/adapter.js';

interface Rpc {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: unknown;
}

export const sessionId = 'session-1';
const agentInfo = { name: 'agent-of-the-test', version: '1.2.3' };
export const hello = { protocolVersion: 1, agentCapabilities: {}, agentInfo };

export const bare: AcpPreset = {
  command: ['agent'],
  args: ['--acp'],
  env: {},
  folders: { HOME: '.' },
  files: () => ({}),
  credentials: [],
};

export function lineOf(message: object): string {
  return `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
}

export function result(id: number, value: unknown): string {
  return lineOf({ id, result: value });
}

export function update(told: object, session = sessionId): string {
  return lineOf({ method: 'session/update', params: { sessionId: session, update: told } });
}

export function chunk(text: string): string {
  return update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
}

export function turnOf(text: string, more: Partial<Turn> = {}): Turn {
  return { ...plainLaunch(null), text, history: [], ...more };
}

/** Returns what the adapter learns from an agent that answers `initialize` with `says`. */
export function learned(
  preset = bare,
  extraArgs: readonly string[] = [],
  givenVariables: GivenVariables = {},
  says: object = hello,
): Promise<ProgramVersion> {
  const adapter = acpAdapter('acp', preset, null, {
    extraArgs,
    givenVariables: givenVariables,
    homeFiles: [],
    mayHaveTools: true,
  });
  return adapter.learn(async () => ({ code: null, stdout: result(0, says) }));
}

/** Callback address that the test agents receive. */
export const callback = { url: 'http://127.0.0.1:1/', headers: { Authorization: 'Bearer secret' } };

/** Conversation with an agent whose lines the test writes. */
export class PlayedAgent {
  readonly #protocol: Protocol;
  readonly written: Rpc[] = [];
  #turns = 0;
  #posts = 0;

  constructor(programVersion: ProgramVersion) {
    this.#protocol = programVersion.protocol();
    this.#take(this.#protocol.opening?.('/work', callback) ?? '');
  }

  /** Renews the process. Returns whether this is possible. */
  renews(): boolean {
    const input = this.#protocol.writer.renew?.() ?? null;
    this.#take(input?.text ?? '');
    return input !== null;
  }

  /** Reads lines of the agent. Returns the decoder's events; replies are added to `written`. */
  says(...lines: readonly string[]): readonly DecoderEvent[] {
    const events = Array.from(this.#protocol.decoder.read(lines.join('')));
    for (const event of events) if (event.type === 'reply') this.#take(event.text);
    return events.filter(({ type }) => type !== 'reply');
  }

  /** Answers the requests that open the session. */
  opens(session: object = {}, as: object = hello): readonly DecoderEvent[] {
    return [...this.says(result(0, as)), ...this.says(result(1, { sessionId, ...session }))];
  }

  takesPrompt(text: string, more: Partial<Turn> = {}): void {
    this.#take(this.#protocol.writer.write(turnOf(text, more), ++this.#turns).text);
    this.#protocol.decoder.begin?.(this.#turns);
  }

  /** Sends a message to the agent's callback. Returns the decoder's events and all answers so far. */
  posts(method: string, params: object = {}, id: number | null = 7) {
    const answers: { readonly result?: Readonly<Record<string, unknown>>; readonly error?: object }[] = [];
    const answer = (json: string) => void answers.push(json === '' ? {} : JSON.parse(json));
    const request = { id: `r${++this.#posts}`, body: lineOf({ ...(id !== null && { id }), method, params }), answer };
    const events = Array.from(this.#protocol.decoder.requested?.(request) ?? []);
    return { events, answers };
  }

  get last(): Rpc | undefined {
    return this.written.at(-1);
  }

  /** Text of the last prompt that the agent received. */
  get prompted(): string | undefined {
    const { method, params = {} } = this.last ?? {};
    if (method !== 'session/prompt') return undefined;
    return (params.prompt as { text: string }[]).map(({ text }) => text).join('|');
  }

  get decoder() {
    return this.#protocol.decoder;
  }

  #take(text: string): void {
    for (const line of text.split('\n')) if (line !== '') this.written.push(JSON.parse(line) as Rpc);
  }
}
