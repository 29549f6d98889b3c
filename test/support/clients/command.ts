import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Service } from '../service/service.js';

export const commandProgram = join(__dirname, '..', '..', '..', 'src', 'command', 'main.js');

export interface CommandResult {
  /** Exit code; null if a signal ended the command. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** File descriptor for stdout; the result then has no stdout. */
  readonly stdout?: number;
}

/** Returns the variables with which the command finds a service. */
export function envFor(service: Pick<Service, 'port'>): Record<string, string> {
  return { MODEL_API_PORT: String(service.port) };
}

export function spawnCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  stdout: 'pipe' | number = 'pipe',
): ChildProcess {
  const surroundings = { PATH: process.env.PATH ?? '', HOME: '/nonexistent', ...env };
  return spawn(process.execPath, [commandProgram, ...args], { env: surroundings, stdio: ['pipe', stdout, 'pipe'] });
}

/** Runs the command until it exits. */
export async function runCommand(
  args: readonly string[],
  { env = {}, input = '', stdout: output }: CommandOptions = {},
): Promise<CommandResult> {
  const child = spawnCommand(args, env, output);
  child.stdin?.on('error', () => {}).end(input);
  const [[code], stdout, stderr] = await Promise.all([
    once(child, 'exit') as Promise<[number | null]>,
    child.stdout === null ? '' : text(child.stdout),
    text(child.stderr as NodeJS.ReadableStream),
  ]);
  return { code, stdout, stderr };
}

const usage = { input_tokens: 1, output_tokens: 7 };
const figures = { model: 'm', usage, queue_ms: 0, duration_ms: 1, request_id: 'r' };

/** Server whose answers differ from their deltas, like a service whose model restarts after its first text was sent. */
export class ResendingService implements AsyncDisposable {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<ResendingService> {
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'text/event-stream');
      response.write(eventOf('delta', { text: 'The capital of Fra' }));
      response.end(eventOf('done', { success: true, response: 'It is Paris.', ...figures }));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return new ResendingService(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close().closeAllConnections();
    await once(this.#server, 'close');
  }
}

function eventOf(event: string, body: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(body)}\n\n`;
}
