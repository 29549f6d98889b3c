import { execFile, execFileSync, spawn } from 'node:child_process';
import { createReadStream, existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { HealthBody } from '../../../src/shared/api/health.js';
import type { VersionBody } from '../../../src/shared/api/version.js';
import { temporaryFolder } from '../basics/folder.js';
import { until } from '../basics/until.js';
import { snippetsFor } from '../documents/snippets.js';
import { root } from '../documents/sources.js';

/** Tool that boots a separate systemd in namespaces: `up`, `run <command>`, `down`. */
const tool = process.env.SYSTEMD_LAB_TOOL ?? join(root, '..', 'shared', 'systemd-lab', 'lab');

/** Returns the reason why no lab can run here; null if one can. */
function hindrance(): string | null {
  if (!existsSync(tool)) return `there is no ${tool} (SYSTEMD_LAB_TOOL names another)`;
  if (process.getuid?.() !== 0) return 'it needs root';
  try {
    execFileSync('unshare', ['--mount', '--uts', '--ipc', '--net', '--pid', '--cgroup', '--fork', 'true']);
    return null;
  } catch {
    return 'there are no namespaces to be had';
  }
}

/** Returns `describe`, or skips with a message if no systemd can be booted. */
export function describeInLab(): jest.Describe {
  const why = hindrance();
  if (why === null) return describe;
  process.stderr.write(`Skipped, because ${why}: the suite under a real systemd.\n`);
  return describe.skip;
}

export interface Traffic extends AsyncDisposable {
  /** Stops the requests; resolves with the number of each status or error. */
  stop(): Promise<Readonly<Record<string, number>>>;
}

const unit = 'prompt-relay.service';
const installed = '/usr/local/lib/node_modules/prompt-relay';
export const checkout = '/root/checkout';
/** Folder of fixture programs that the service's user may run. */
const openPrograms = '/srv/programs';
const programs = join('test', 'support', 'fixtures', 'programs');
const url = 'http://127.0.0.1:5051';
const cgroups = '/sys/fs/cgroup';
/** Argument of `find`: the lab shows the disk of the host, where another suite may build container images meanwhile. */
export const outsideImages = '! -path "/var/lib/containers/*"';
/** Cgroup of the service. */
export const serviceCgroup = `${cgroups}/system.slice/${unit}`;

/** Isolated machine with a real systemd and only loopback; written files do not persist. */
export class SystemdLab implements AsyncDisposable {
  readonly #env: NodeJS.ProcessEnv;
  readonly #state: string;

  constructor(state: string) {
    this.#state = state;
    this.#env = { ...process.env, SYSTEMD_LAB: state };
  }

  static async boot(): Promise<SystemdLab> {
    const lab = new SystemdLab(join(await mkdtemp(join(tmpdir(), 'lab-')), 'state'));
    await promisify(execFile)(tool, ['up'], { env: lab.#env });
    await lab.#useCgroup2();
    return lab;
  }

  /**
   * Hides cgroup v1: on a host that has it, systemd uses both versions. When systemd restarts, it uses the mounted
   * ones.
   */
  async #useCgroup2(): Promise<void> {
    if ((await this.run('stat', '--file-system', '--format', '%T', cgroups)) === 'cgroup2fs') return;
    await this.attempt('umount', '--lazy', `${cgroups}/unified`);
    await this.run('mount', '--types', 'cgroup2', 'cgroup2', cgroups);
    await this.systemctl('daemon-reexec');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await promisify(execFile)(tool, ['down'], { env: this.#env });
    await rm(join(this.#state, '..'), { recursive: true, force: true });
  }

  /** Runs a command, and returns its output; rejects if it fails. */
  async run(...command: string[]): Promise<string> {
    return (await promisify(execFile)(tool, ['run', ...command], { env: this.#env })).stdout.trim();
  }

  shell(script: string): Promise<string> {
    return this.run('bash', '-o', 'errexit', '-o', 'pipefail', '-c', script);
  }

  /** Runs a command, and returns its output; null if it fails. */
  attempt(...command: string[]): Promise<string | null> {
    return this.run(...command).catch(() => null);
  }

  /** Copies the checkout, without ignored files. */
  async copyCheckout(): Promise<void> {
    const list = execFileSync('git', ['ls-files', '-z', '-c', '-o', '--exclude-standard', '--deduplicate'], {
      cwd: root,
    });
    await this.#copy(checkout, ['--exclude=node_modules', '-T', '-'], list);
    await this.shell(`cp -rT ${checkout}/${programs} ${openPrograms}; chmod -R go=rX ${openPrograms}`);
  }

  /** Copies the built program and its runtime packages to the documented place. */
  async copyBuilt(): Promise<void> {
    const listed = execFileSync('npm', ['ls', '--omit=dev', '--all', '--parseable'], { cwd: root, encoding: 'utf8' });
    const packages = listed.trim().split('\n').slice(1);
    const names = ['package.json', 'deploy', 'dist', ...packages.map((path) => path.slice(root.length + 1))];
    await this.#copy(installed, ['-T', '-'], Buffer.from(`${names.join('\0')}\0`));
  }

  /** Copies a program into the lab, which cannot see every folder of the host. */
  async copyProgram(from: string, to: string): Promise<void> {
    const script = 'cat >"$0.part" && chmod 755 "$0.part" && mv "$0.part" "$0"';
    const child = spawn(tool, ['run', 'sh', '-c', script, to], { env: this.#env });
    const errorOutput = text(child.stderr);
    const done = new Promise((resolve) => child.once('exit', resolve));
    await pipeline(createReadStream(from), child.stdin).catch(async (error) => {
      throw new Error(`${to} was not written: ${await errorOutput}`, { cause: error });
    });
    expect(await done).toBe(0);
  }

  /** Copies a fixture program to the folder where `traffic` looks for it. */
  async copyFixture(name: string): Promise<void> {
    await this.run('mkdir', '-p', join(checkout, programs));
    await this.copyProgram(join(root, programs, name), join(checkout, programs, name));
  }

  async #copy(to: string, what: readonly string[], list: Buffer): Promise<void> {
    const pack = spawn('tar', ['-c', '--null', '--ignore-failed-read', ...what], { cwd: root });
    const unpack = spawn(tool, ['run', 'sh', '-c', `mkdir -p ${to} && tar -x -C ${to}`], { env: this.#env });
    pack.stdin.end(list);
    const done = new Promise((resolve) => unpack.once('exit', resolve));
    await pipeline(pack.stdout, unpack.stdin);
    expect(await done).toBe(0);
  }

  systemctl(...words: string[]): Promise<string> {
    return this.run('systemctl', ...words);
  }

  /** Returns a systemd property of the service. */
  show(property: string): Promise<string> {
    return this.systemctl('show', '--value', '--property', property, unit);
  }

  async mainPid(): Promise<number> {
    return Number(await this.show('MainPID'));
  }

  /** Restarts the service without its socket, with these settings and drop-in lines. */
  async restartWith(settings: Readonly<Record<string, string>>, ...lines: string[]): Promise<void> {
    await this.systemctl('stop', 'prompt-relay.socket', unit);
    await this.configure(settings, ...lines);
    await this.systemctl('start', unit);
  }

  /** Writes settings and drop-in lines for the next start. */
  async configure(settings: Readonly<Record<string, string>>, ...lines: string[]): Promise<void> {
    const environment = Object.entries(settings).map(([name, value]) => `${name}="${value}"\n`);
    await this.#write('/etc/prompt-relay/environment', environment.join(''));
    await this.#write(`/run/systemd/system/${unit}.d/test.conf`, ['[Service]', ...lines, ''].join('\n'));
    await this.systemctl('daemon-reload');
    await this.systemctl('reset-failed');
  }

  async #write(path: string, content: string): Promise<void> {
    await this.run('sh', '-c', 'mkdir -p "$0" && printf %s "$2" >"$1"', dirname(path), path, content);
  }

  /** Returns the command line of a fixture program in the lab. */
  program(name: string, ...args: string[]): string {
    return [join(openPrograms, name), ...args].join(' ');
  }

  /** Returns the health with the key, which includes the workers' pids; null if the service does not answer. */
  async health(): Promise<HealthBody | null> {
    const script =
      'exec curl --silent --max-time 10 --header "X-API-Key: $(cat /etc/prompt-relay/api_key)" "$0/health"';
    const body = await this.attempt('sh', '-c', script, url);
    return body === null ? null : (JSON.parse(body) as HealthBody);
  }

  /** Returns the version. Waits while the socket queues the request. */
  async version(): Promise<VersionBody> {
    return JSON.parse(await this.run('curl', '--silent', `${url}/version`));
  }

  /** Returns the last record of this event. */
  async logged(event: string): Promise<Readonly<Record<string, unknown>>> {
    return JSON.parse((await this.journal(`"event":"${event}"`)).at(-1) ?? '{}');
  }

  async uptimeSeconds(): Promise<number> {
    return (await this.health())?.observability.uptime_seconds ?? 0;
  }

  /** Number of running jobs. */
  async running(): Promise<number> {
    return (await this.health())?.observability.model_runtime.active_requests ?? 0;
  }

  /** Returns the pids of the listening workers. */
  async workers(): Promise<number[]> {
    const workers = (await this.health())?.observability.workers ?? [];
    return workers.flatMap(({ pid, state }) => (typeof pid === 'number' && state === 'ready' ? [pid] : []));
  }

  untilServing(withinMs?: number): Promise<unknown> {
    return until(async () => (await this.workers()).length > 0, 'the service to answer', withinMs);
  }

  /** Sends a prompt; resolves with the status and the body, a line each. */
  async ask(prompt: string, key: string): Promise<string> {
    const headers = ['--header', 'Content-Type: application/json', '--header', `X-API-Key: ${key}`];
    const body = ['--data', JSON.stringify({ prompt })];
    return this.run('curl', '--silent', '--write-out', '\\n%{http_code}', ...headers, ...body, `${url}/ask`);
  }

  traffic(path: string, lanes: number, ...bodyAndKey: string[]): Traffic {
    const program = join(checkout, programs, 'sends-requests.js');
    const client = ['run', 'node', program, url + path, String(lanes), ...bodyAndKey];
    const { stdin, stdout } = spawn(tool, client, { env: this.#env, stdio: ['pipe', 'pipe', 'inherit'] });
    const output = text(stdout);
    const end = () => {
      stdin.end();
      return output;
    };
    return { stop: async () => JSON.parse(await end()), [Symbol.asyncDispose]: async () => void (await end()) };
  }

  /**
   * Returns the lines of the service's journal that match this regular expression; under load, the whole journal has
   * megabytes.
   */
  async journal(pattern: string): Promise<string[]> {
    const matching = ['--grep', pattern, '--case-sensitive=true', '--output', 'cat', '--no-pager', '--quiet'];
    return (await this.attempt('journalctl', '--unit', unit, ...matching))?.split('\n') ?? [];
  }
}

/**
 * Packs the npm package of the built program, and leaves its dependencies in npm's cache, so that a lab can install it.
 */
export async function packBuilt(): Promise<AsyncDisposable & { readonly file: string; readonly version: string }> {
  const folder = await temporaryFolder();
  const npm = (...args: string[]) => promisify(execFile)('npm', args, { cwd: root });
  const { stdout } = await npm('pack', '--ignore-scripts', '--silent', '--pack-destination', folder.path);
  const name = stdout.trim();
  const file = join(folder.path, name);
  await npm('install', '--global', '--ignore-scripts', '--prefix', join(folder.path, 'prefix'), file);
  // Matches only the name: the folder may contain a dash and a digit.
  const version = /-(\d\S*)\.tgz$/.exec(name)?.[1] ?? '';
  return { file, version, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

export type Procedure = 'install' | 'upgrade' | 'rollback' | 'uninstall';

/** Returns the commands of the document, in order. */
export function steps(): Readonly<Record<Procedure, string[]>> {
  const blocks = snippetsFor('programs/systemd/units').map(({ code }) => code.trimEnd().split('\n'));
  const [install = [], upgrade = [], rollback = [], uninstall = []] = blocks;
  return { install, upgrade, rollback, uninstall };
}
