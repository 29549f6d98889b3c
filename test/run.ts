import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { delimiter, join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { optionalPackages, packages, type Suite, suites, type Variant } from './suites.js';
import { cacheFor, installNode } from './support/agents/install-once.js';
import { root } from './support/documents/sources.js';

const usage = `Usage: npm run suite NAME [-- ARGUMENTS OF JEST]
       npm run test:all     every suite but those on demand
       npm run suite missing [optional]     packages of Debian that the suites need and this machine does not have
`;

/** With CI set, a test of the running service may have a second try. More of them in a suite than this fail it. */
const maxSecondTries = 1;
const jestProgram = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
/** A part of a suite that runs longer is ended, and fails: otherwise a test that hangs would take the output of all others with it. */
const partLimitMs = 35 * 60_000;
/** What each file and each test took, as Jest writes it with `--json`, and the output of suites that ran beside others. */
const results = cacheFor('results');

interface JestResults {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    /** All messages of the file. */
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
      readonly invocations?: number;
      /** Message of each try that was followed by another. */
      readonly retryMessages?: readonly string[];
    }[];
  }[];
}

/** Lines of a message that the report at the end shows. */
const maxLinesOfFailure = 12;
/** Length of the message of a first try in the report, in which it has one line. */
const maxFirstTryLength = 400;

export interface Outcome {
  readonly name: string;
  readonly isGreen: boolean;
  readonly ms: number;
  /** The tests that passed at their second try, each with the message of the first. */
  readonly secondTries: readonly string[];
  /** Name and beginning of the message of each failed test, or of a failed file without one. */
  readonly failures: readonly string[];
}

type Output = number | 'inherit';

/** Starts suites, and ends what it has started at SIGTERM. */
class Runner {
  readonly #children = new Set<ChildProcess>();
  #isStopped = false;

  constructor() {
    // At Ctrl-C the terminal signals the children itself.
    process.on('SIGINT', () => this.#stop());
    process.on('SIGTERM', () => this.#stop('SIGTERM'));
  }

  async run(name: string, suite: Suite, args: readonly string[], output: Output): Promise<Outcome> {
    const begunMs = performance.now();
    const secondTries: string[] = [];
    const failures: string[] = [];
    let isGreen = true;
    if ('command' in suite) isGreen = await this.#start([...suite.command, ...args], {}, output);
    else
      for (const variant of suite.variants ?? [undefined]) {
        const part = await this.#jest(name, variant, args, output);
        isGreen &&= part.isGreen;
        secondTries.push(...part.secondTries);
        failures.push(...part.failures);
      }
    isGreen &&= secondTries.length <= maxSecondTries;
    return { name, isGreen, ms: performance.now() - begunMs, secondTries, failures };
  }

  /** Its output goes to a file, which is printed in one piece at the end. */
  async runQuietly(name: string, suite: Suite): Promise<Outcome> {
    const file = join(results, `${name}.log`);
    process.stdout.write(`${name}: started\n`);
    const output = openSync(file, 'w');
    try {
      return await this.run(name, suite, [], output);
    } catch (error) {
      writeSync(output, `${String(error)}\n`);
      return { name, isGreen: false, ms: 0, secondTries: [], failures: [String(error)] };
    } finally {
      closeSync(output);
      process.stdout.write(`\n${name}:\n${readFileSync(file, 'utf8')}\n`);
    }
  }

  async #jest(name: string, variant: Variant | undefined, args: readonly string[], output: Output) {
    const label = variant === undefined ? name : `${name}, ${variant.name}`;
    const file = join(results, `${label.replaceAll(/\W+/g, '-')}.json`);
    await rm(file, { force: true });
    const bin = variant?.node === undefined ? null : await installNode(variant.node);
    const path = bin === null ? {} : { PATH: `${bin}${delimiter}${process.env.PATH}` };
    const env = { ...variant?.env, ...path, SUITE: name, VARIANT: variant?.name };
    const node = bin === null ? process.execPath : join(bin, 'node');
    const options = ['--json', `--outputFile=${file}`];
    // The tests that were asked for may all be in another variant.
    if (variant?.files !== undefined) options.push('--passWithNoTests');
    if (variant?.tests !== undefined && args.length === 0) options.push(`--testNamePattern=${variant.tests}`);
    if (variant !== undefined) writeSync(output === 'inherit' ? 1 : output, `\n${label}\n`);
    const isGreen = await this.#start([node, jestProgram, ...options, ...args], env, output);
    const { testResults } = await resultsIn(file);
    return { isGreen, secondTries: secondTriesOf(testResults), failures: failuresOf(testResults) };
  }

  /** Resolves with whether the program has exited with 0. */
  async #start(command: readonly string[], env: NodeJS.ProcessEnv, output: Output): Promise<boolean> {
    if (this.#isStopped) return false;
    const [program = '', ...args] = command;
    const stdio = [output === 'inherit' ? 'inherit' : 'ignore', output, output] as const;
    const limit = process.env.CI === 'true' ? { timeout: partLimitMs } : {};
    const child = spawn(program, args, { cwd: root, env: { ...process.env, ...env }, stdio: [...stdio], ...limit });
    this.#children.add(child);
    try {
      const [code] = await once(child, 'exit');
      return code === 0;
    } finally {
      this.#children.delete(child);
    }
  }

  #stop(signal?: NodeJS.Signals): void {
    this.#isStopped = true;
    if (signal !== undefined) for (const child of this.#children) child.kill(signal);
  }
}

async function resultsIn(file: string): Promise<JestResults> {
  const text = await readFile(file, 'utf8').catch(() => '{"testResults":[]}'); // no results: Jest has not begun
  return JSON.parse(text);
}

/** Returns a line for each test that passed at its second try: its name, and why the first failed. */
export function secondTriesOf(files: JestResults['testResults']): string[] {
  return files
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status, invocations = 1 }) => status === 'passed' && invocations > 1)
    .map(({ fullName, retryMessages = [] }) => [fullName, ...retryMessages.map(inOneLine)].join(': '));
}

/** Returns a message without the quoted code and the stack, and the place in the test, in one line. */
function inOneLine(message: string): string {
  const lines = stripVTControlCharacters(message).split('\n');
  const said = lines.filter((line) => !/^\s*(?:>?\s*\d+ \||\||at )/.test(line));
  const place = lines.findLast((line) => /^\s*at .*\btest\//.test(line)) ?? '';
  return [said.join(' ').slice(0, maxFirstTryLength), place].join(' ').replace(/\s+/g, ' ').trim();
}

/** Returns the name and the beginning of the message of each failed test, or of a failed file without a failed test. */
export function failuresOf(files: JestResults['testResults']): string[] {
  return files.flatMap(({ name, status, message, assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === 'failed');
    if (failed.length > 0)
      return failed.map(({ fullName, failureMessages, retryMessages = [] }) =>
        [
          shownFailure(fullName, failureMessages.join('\n')),
          ...retryMessages.map((first) => `    at the first try: ${inOneLine(first)}`),
        ].join('\n'),
      );
    return status === 'failed' ? [shownFailure(relative(root, name), message)] : [];
  });
}

function shownFailure(title: string, message: string): string {
  const lines = stripVTControlCharacters(message)
    .split('\n')
    .filter((line) => line.trim() !== '');
  return [title, ...lines.slice(0, maxLinesOfFailure).map((line) => `    ${line.slice(0, 500)}`)].join('\n');
}

/** Runs all of them, in order, each as soon as there are processors for it. Resolves with the outcomes in order of their ends. */
export async function runBeside<Name extends string>(
  waiting: readonly (readonly [Name, Pick<Suite, 'processors'>])[],
  processors: number,
  runOne: (name: Name) => Promise<Outcome>,
): Promise<Outcome[]> {
  const left = [...waiting];
  const outcomes: Outcome[] = [];
  const running = new Set<Promise<void>>();
  let busy = 0;
  const start = (name: Name, share: number) => {
    busy += share;
    const ended = runOne(name).then((outcome) => {
      outcomes.push(outcome);
      busy -= share;
      running.delete(ended);
    });
    running.add(ended);
  };
  while (left.length > 0 || running.size > 0) {
    const next = left.findIndex(([, suite]) => running.size === 0 || busy + suite.processors <= processors);
    const [name, suite] = left[next] ?? [];
    if (name !== undefined && suite !== undefined) {
      left.splice(next, 1);
      start(name, suite.processors);
    } else await Promise.race(running);
  }
  return outcomes;
}

/**
 * Returns how long each suite took, which ones have failed, each failure, and each second try with its number and reason.
 * The second tries come last, because a log may be cut at its beginning.
 */
export function report(outcomes: readonly Outcome[]): string {
  const rows = outcomes.map(({ name, isGreen, ms, secondTries }) => {
    const seconds = Math.round(ms / 1000);
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
    const tries = secondTries.length > 0 ? `  ${secondTries.length} at the second try` : '';
    return `  ${name.padEnd(13)} ${time.padStart(6)}${isGreen ? '' : '  failed'}${tries}`;
  });
  const again = outcomes.flatMap(({ name, secondTries }) =>
    secondTries.map((test, index) => `  ${name}, second try ${index + 1} of at most ${maxSecondTries}: ${test}`),
  );
  const failed = outcomes.flatMap(({ name, failures }) => failures.map((failure) => `  ${name}, failed: ${failure}`));
  return `\n${['What each suite took:', ...rows, ...failed, ...again].join('\n')}\n`;
}

/** Returns the time of all processors since the start of the machine, and the part of it in which they worked. */
function processorTimes(): { readonly all: number; readonly busy: number } {
  const times = cpus().map((cpu) => cpu.times);
  const all = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
  return { all, busy: all - times.reduce((sum, { idle }) => sum + idle, 0) };
}

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Returns one line about programs that a suite needs and this machine does not have; null if it has all. */
export function missingLine(name: string, { needs = [] }: Suite, isFound = isOnPath): string | null {
  const all: Readonly<Record<string, string>> = { ...packages, ...optionalPackages };
  const missing = needs.filter((program) => !isFound(program));
  if (missing.length === 0) return null;
  const names = [...new Set(missing.map((program) => all[program]))].join(' ');
  return `The suite ${name} needs programs that are not on PATH: ${missing.join(', ')} (apt-get install ${names})`;
}

/** Prints what a suite misses. Returns whether it can run: with CI set, no test may be skipped. */
function canRun(name: string, suite: Suite): boolean {
  const line = missingLine(name, suite);
  if (line === null) return true;
  const isCi = process.env.CI !== undefined;
  process.stderr.write(`${line}${isCi ? '' : '. The tests that need them are skipped.'}\n`);
  return !isCi;
}

function printMissing(wanted: Readonly<Record<string, string>>): void {
  const missing = Object.entries(wanted).filter(([program]) => !isOnPath(program));
  for (const name of new Set(missing.map(([, name]) => name))) process.stdout.write(`${name}\n`);
}

async function main([name = '', ...args]: readonly string[]): Promise<void> {
  if (name === 'missing') return printMissing(args[0] === 'optional' ? optionalPackages : packages);
  const suite = suites[name];
  if (suite === undefined && name !== 'all') {
    process.stderr.write(`${usage}Suites: ${Object.keys(suites).join(', ')}\n`);
    process.exitCode = 2;
    return;
  }
  const chosen = Object.entries(suites).filter((row) => row[1].isOnDemand !== true);
  if (suite !== undefined && !canRun(name, suite)) {
    process.exitCode = 1;
    return;
  }
  await mkdir(results, { recursive: true });
  const runner = new Runner();
  const before = processorTimes();
  const outcomes =
    suite === undefined
      ? await runBeside(chosen, availableParallelism(), (each) => runner.runQuietly(each, suites[each] as Suite))
      : [await runner.run(name, suite, args, 'inherit')];
  process.stdout.write(report(outcomes));
  const { all, busy } = processorTimes();
  const share = (busy - before.busy) / (all - before.all);
  process.stdout.write(`The processors were busy for ${Math.round(100 * share)} % of the time.\n`);
  process.exitCode = outcomes.every(({ isGreen }) => isGreen) ? 0 : 1;
}

if (require.main === module) void main(process.argv.slice(2));
