/** What Jest tells of a test: how often it was run, among others. */
interface TestResult {
  readonly fullName: string;
  readonly status: string;
  readonly invocations?: number;
}

interface RunResult {
  readonly testResults: readonly { readonly testResults: readonly TestResult[] }[];
}

/** A stall of the machine meets what runs at that moment: up to three files at once, in each a test or two. */
const maxSecondChances = 5;

/** Prints which tests have passed only at their second try. More of them in a run than a stall explains fail it. */
// biome-ignore lint/style/noDefaultExport: Jest takes a reporter in no other way.
export default class SecondChanceReporter {
  #names: readonly string[] = [];

  onRunComplete(_contexts: unknown, { testResults }: RunResult): void {
    const tests = testResults.flatMap((file) => file.testResults);
    const again = tests.filter(({ status, invocations = 1 }) => status === 'passed' && invocations > 1);
    this.#names = again.map(({ fullName }) => fullName);
    if (this.#names.length > 0) process.stderr.write(`\nPassed at their second try:\n${this.#list()}\n`);
  }

  /** Jest fails a run that leaves an error here. */
  getLastError(): Error | undefined {
    if (this.#names.length <= maxSecondChances) return undefined;
    return new Error(`More than ${maxSecondChances} tests needed a second try.`);
  }

  #list(): string {
    return this.#names.map((name) => `  ${name}`).join('\n');
  }
}
