import { execFile } from 'node:child_process';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../basics/folder.js';
import { until } from '../basics/until.js';
import type { Service } from '../service/service.js';
import { commandProgram, envFor } from './command.js';

const run = promisify(execFile);
/** Exit code of a program stopped by Ctrl-Z: 128 and the number of SIGTSTP. */
const stopped = 148;

export interface ScreenOptions {
  /** Shell redirection for the command. */
  readonly redirected?: string;
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Terminal, by default with 90 columns and 24 rows. Runs the command, continues it after Ctrl-Z (at most twice), then
 * shows its exit code.
 */
export class Screen implements AsyncDisposable {
  readonly #tmux: readonly string[];
  readonly #folder: AsyncDisposable;

  constructor(socket: string, folder: AsyncDisposable) {
    this.#tmux = ['-S', socket, '-f', '/dev/null', '-u'];
    this.#folder = folder;
  }

  static open(
    service: Pick<Service, 'port'>,
    args: readonly string[],
    options: Omit<ScreenOptions, 'env'> = {},
  ): Promise<Screen> {
    return Screen.run(args, { ...options, env: envFor(service) });
  }

  /** Runs the command with these arguments. */
  static run(args: readonly string[], options: ScreenOptions = {}): Promise<Screen> {
    const command = [process.execPath, commandProgram, ...args].map((word) => `'${word}'`).join(' ');
    return Screen.shell(command, options);
  }

  /** Runs a shell command line. */
  static async shell(command: string, options: ScreenOptions = {}): Promise<Screen> {
    const { redirected = '', columns = 90, rows = 24 } = options;
    const folder = await temporaryFolder();
    const screen = new Screen(join(folder.path, 'tmux'), folder);
    const env = Object.entries(options.env ?? {}).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
    // A loop would end at the Ctrl-Z, so the command is continued without one.
    const resume = `if [ $code = ${stopped} ]; then echo "continued"; fg >/dev/null; code=$?; fi`;
    const shell = `set -m; ${command} ${redirected}; code=$?; ${resume}; ${resume}; echo "ended with $code"; sleep 60`;
    await screen.#run('new-session', '-d', '-x', String(columns), '-y', String(rows), ...env, shell);
    return screen;
  }

  async press(...keys: readonly string[]): Promise<void> {
    await this.#run('send-keys', ...keys);
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#run('resize-window', '-x', String(columns), '-y', String(rows));
  }

  /** Returns the lines on the screen, without blank lines at the end. */
  async lines(): Promise<string[]> {
    return (await this.#run('capture-pane', '-p')).trimEnd().split('\n');
  }

  /** Returns the text on the screen with its colour codes. */
  async colouredText(): Promise<string> {
    return (await this.#run('capture-pane', '-p', '-e')).trimEnd();
  }

  async shows(text: string): Promise<string[]> {
    return until(async () => {
      const lines = await this.lines();
      return lines.join('\n').includes(text) ? lines : null;
    }, `the screen to show ${text}`);
  }

  /** Resolves when the command has been continued this many times and is in the foreground. */
  async isContinued(times: number): Promise<void> {
    await until(async () => {
      const count = (await this.lines()).filter((line) => line.endsWith('continued')).length;
      const foreground = await this.#run('display-message', '-p', '#{pane_current_command}');
      return count === times && foreground.trim() === basename(process.execPath);
    }, 'the command to be continued');
  }

  /** Closes the terminal, like a user who closes the window. */
  async close(): Promise<void> {
    await this.#run('kill-server').catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    await this.#folder[Symbol.asyncDispose]();
  }

  async #run(...args: readonly string[]): Promise<string> {
    const env = { PATH: process.env.PATH, TERM: 'xterm-256color', LC_ALL: 'C.UTF-8' };
    return (await run('tmux', [...this.#tmux, ...args], { env })).stdout;
  }
}
