import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TemporaryFolder, temporaryFolder } from './folder.js';
import type { Service } from './service.js';
import { until } from './until.js';

export const prometheusProgram = '/usr/bin/prometheus';

/** Some scrapes and evaluations, on a machine that is busy. */
const limitMs = 30_000;

/** What is scraped, by the name of its instance. */
export type Targets = Readonly<Record<string, Service>>;

interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [seconds: number, value: string];
}

interface Rule {
  readonly name: string;
  readonly health: 'ok' | 'err' | 'unknown';
  readonly lastError?: string;
}

/** A real Prometheus on a free port of loopback, that scrapes and evaluates each second. */
export class Prometheus implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #folder: TemporaryFolder;
  readonly #log: string[] = [];
  #url = '';

  constructor(process: ChildProcess, folder: TemporaryFolder) {
    this.#process = process;
    this.#folder = folder;
    if (process.stderr !== null) createInterface({ input: process.stderr }).on('line', (line) => this.#log.push(line));
  }

  async ready(): Promise<void> {
    const port = () => this.#find(/msg="Listening on" address=127\.0\.0\.1:(\d+)/)?.[1];
    this.#url = `http://127.0.0.1:${await until(port, 'Prometheus to listen', limitMs)}`;
    await until(() => this.#find(/Server is ready/), 'Prometheus to be ready', limitMs);
  }

  /** Numbers that an expression has now, by their labels; NaN is no number. Throws what Prometheus says against it. */
  async query(expr: string): Promise<Sample[]> {
    const { result } = await this.#get<{ result: Sample[] }>(`query?${new URLSearchParams({ query: expr })}`);
    return result.filter(({ value: [, value] }) => value !== 'NaN');
  }

  /** Resolves when the expression has a number. */
  async has(expr: string): Promise<void> {
    await until(async () => (await this.query(expr)).length > 0, `a number for ${expr}`, limitMs);
  }

  async rules(): Promise<Rule[]> {
    const { groups } = await this.#get<{ groups: { rules: Rule[] }[] }>('rules');
    return groups.flatMap(({ rules }) => rules);
  }

  async #get<Data>(path: string): Promise<Data> {
    const response = await fetch(`${this.#url}/api/v1/${path}`);
    const { data, error } = (await response.json()) as { data: Data; error?: string };
    if (error !== undefined) throw new Error(`${path}: ${error}`);
    return data;
  }

  #find(pattern: RegExp): RegExpExecArray | null {
    return this.#log.map((line) => pattern.exec(line)).find((found) => found !== null) ?? null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.kill()) await once(this.#process, 'exit');
    await this.#folder[Symbol.asyncDispose]();
  }
}

/** Starts a Prometheus with these rule files, and waits until it has seen every target. */
export async function startPrometheus(targets: Targets, ruleFiles: readonly string[]): Promise<Prometheus> {
  const folder = await temporaryFolder();
  const config = join(folder.path, 'prometheus.yml');
  await writeFile(config, JSON.stringify(configOf(targets, ruleFiles))); // JSON is YAML
  const args = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${folder.path}/data`,
    '--web.listen-address=127.0.0.1:0',
  ];
  const child = spawn(prometheusProgram, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const prometheus = new Prometheus(child, folder);
  try {
    await prometheus.ready();
    for (const instance of Object.keys(targets)) await prometheus.has(`up{instance="${instance}"} == 1`);
    return prometheus;
  } catch (error) {
    await prometheus[Symbol.asyncDispose]();
    throw error;
  }
}

function configOf(targets: Targets, ruleFiles: readonly string[]): object {
  const configs = Object.entries(targets).map(([instance, { port }]) => ({
    targets: [`127.0.0.1:${port}`],
    labels: { instance },
  }));
  return {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: ruleFiles,
    scrape_configs: [{ job_name: 'prompt-relay', static_configs: configs }],
  };
}
