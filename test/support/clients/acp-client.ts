import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { withResolvers } from '../../../src/shared/async.js';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: {
    readonly update?: { readonly sessionUpdate: string; readonly content?: { readonly text?: string } };
  };
  readonly result?: Result;
  readonly error?: { readonly message: string };
}

type Result = Readonly<Record<string, unknown>>;
type Call = ReturnType<typeof withResolvers<Result>>;

/** Plays an editor that chats with an agent of the Agent Client Protocol. Owns the agent's process. */
export class AcpClient implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #calls: Call[] = [];
  #answerText = '';

  constructor([program = '', ...args]: readonly string[], cwd: string, env: Readonly<Record<string, string>>) {
    this.#process = spawn(program, args, { cwd, env, stdio: ['pipe', 'pipe', 'ignore'] });
    this.#process.on('exit', () => {
      for (const call of this.#calls) call.reject(new Error('the agent has exited'));
    });
    createInterface({ input: this.#process.stdout as NodeJS.ReadableStream }).on('line', (line) => this.#read(line));
  }

  /** Opens a session in this folder with this model. Returns its id. */
  async begin(cwd: string, modelId: string): Promise<string> {
    await this.#call('initialize', { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await this.#call('session/new', { cwd, mcpServers: [] });
    await this.#call('session/set_model', { sessionId, modelId });
    return sessionId as string;
  }

  /** Returns the text that the editor shows for this prompt: the answer, or the error. */
  async prompt(sessionId: string, text: string): Promise<string> {
    this.#answerText = '';
    const answered = this.#call('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
    return answered.then(() => this.#answerText).catch((error: Error) => this.#answerText + error.message);
  }

  #call(method: string, params: object): Promise<Result> {
    const call = withResolvers<Result>();
    const id = this.#calls.push(call) - 1;
    this.#send({ id, method, params });
    return call.promise;
  }

  #read(line: string): void {
    const { id, method, params, result, error } = JSON.parse(line) as Message;
    const { sessionUpdate, content } = params?.update ?? {};
    if (sessionUpdate === 'agent_message_chunk') this.#answerText += content?.text ?? '';
    if (method !== undefined && id !== undefined) this.#send({ id, error: { code: -32601, message: 'not here' } });
    if (method !== undefined || id === undefined) return;
    if (error === undefined) this.#calls[id]?.resolve(result ?? {});
    else this.#calls[id]?.reject(new Error(error.message));
  }

  #send(message: object): void {
    this.#process.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exited;
  }
}
