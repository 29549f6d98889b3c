/** Debian's packages of the programs that tests start, beside Node. */
export const packages = {
  caddy: 'caddy',
  chromium: 'chromium',
  curl: 'curl',
  faketime: 'faketime',
  'firefox-esr': 'firefox-esr',
  fish: 'fish',
  haproxy: 'haproxy',
  ip: 'iproute2',
  lintian: 'lintian',
  nginx: 'nginx-light',
  pdftotext: 'poppler-utils',
  pip3: 'python3-pip',
  prometheus: 'prometheus',
  promtool: 'prometheus',
  ps: 'procps',
  'redis-server': 'redis-server',
  setpriv: 'util-linux',
  ss: 'iproute2',
  strace: 'strace',
  tmux: 'tmux',
  zsh: 'zsh',
} as const;

/** Without these the tests of the image are skipped, and say so. */
export const optionalPackages = { buildah: 'buildah', debootstrap: 'debootstrap' } as const;

interface Row {
  /**
   * Processors that it keeps busy: its processor time ÷ its time, measured, rounded to quarters. The runner starts suites beside each other as long as these add up to
   * what the machine has.
   */
  readonly processors: number;
  readonly needs?: readonly (keyof typeof packages | keyof typeof optionalPackages)[];
  /** Takes so long that `npm run test:all` leaves it out. */
  readonly isOnDemand?: true;
}

/** One start of Jest; most suites have one. */
export interface Variant {
  readonly name: string;
  /** The version of Node that Jest, the tests, the service and the demo model run under. */
  readonly node?: string;
  /** As in the suite: only these files of it. */
  readonly files?: readonly string[];
  /** Regular expression for the names of tests, if only some are different here. `npx jest` does not know it. */
  readonly tests?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface JestSuite extends Row {
  /** Regular expressions for paths below `test`, without `.test.ts`. */
  readonly files: readonly string[];
  /** For one test. */
  readonly timeLimitMs: number;
  /** Test files that run beside each other. */
  readonly workers: number;
  readonly variants?: readonly Variant[];
}

interface CommandSuite extends Row {
  /** Called in the root, after a build. */
  readonly command: readonly string[];
}

export type Suite = JestSuite | CommandSuite;

/** `MUTATE=primary/jobs npm run mutation` changes one folder, and runs its own tests alone, which is much faster. */
export const mutatedFolders: readonly string[] = process.env.MUTATE?.split(',') ?? [
  'primary/jobs',
  'primary/cli',
  ...['acp', 'codex', 'command', 'demo', 'file'].map((name) => `features/${name}`),
  'primary/health',
  'primary/conversations',
  'primary/access',
  'primary/fairness',
  'shared/ipc',
];

/**
 * Each suite, in the order in which `npm run test:all` starts them: first those that take the whole machine, then the others, the longest first. `jest.config.js`,
 * `npm run test:NAME` and `.ci/run` are made from this table.
 */
export const suites: Readonly<Record<string, Suite>> = {
  /** `npm test` */
  test: {
    files: ['rules/.*', 'unit/.*', 'service/system/.*'],
    timeLimitMs: 30_000,
    workers: 4,
    processors: 2,
    needs: ['curl', 'fish', 'pdftotext', 'promtool', 'ps', 'setpriv', 'zsh'],
  },
  /** What becomes of the processes of the model CLI. Its limits of time are the promises. */
  processes: { files: ['service/processes/.*'], timeLimitMs: 30_000, workers: 2, processors: 2, needs: ['setpriv'] },
  /** Kills, full disks, hostile clients, on the real service. A file of it waits about half of its time. */
  faults: {
    files: ['service/faults/.*'],
    timeLimitMs: 120_000,
    workers: 3,
    processors: 2,
    needs: ['faketime', 'pdftotext', 'redis-server', 'setpriv', 'strace'],
  },
  /** The service without each of its features. */
  features: { files: ['service/features/.*'], timeLimitMs: 300_000, workers: 2, processors: 2 },
  /** Other real model CLIs, each against a stub of its API, and coding agents as clients. Some need seconds of a processor for each start. */
  agents: { files: ['programs/agents/.*'], timeLimitMs: 240_000, workers: 1, processors: 0.75 },
  /**
   * The real claude against a stub of its API: all tests with the newest. With the oldest those of the adapter; with one between them
   * the options that only it gets in another way than the newest, and its renewed processes, which the oldest does not have.
   */
  claude: {
    files: ['programs/claude/.*'],
    timeLimitMs: 120_000,
    workers: 1,
    processors: 0.75,
    variants: [
      { name: 'newest' },
      {
        name: '2.1.328',
        files: ['programs/claude/(told|renewed|rewound)'],
        env: { TESTED_CLAUDE: '2.1.328', RENEWED_QUESTIONS: '29' },
      },
      {
        name: '2.1.197',
        files: ['programs/claude/(adapter|citations|told|thoughts)'],
        env: { TESTED_CLAUDE: '2.1.197' },
      },
    ],
  },
  /** Under the oldest Node that package.json allows, and of each later line of releases the newest when this was written. */
  nodes: {
    files: [
      'service/system/(ask|conversations|door|http-limits|life|openai-door|package|streaming|structured)',
      'service/faults/socket-path',
      'unit/shared/node-internals/.*',
      'unit/(shared/log/output|primary/cli/terminate/tree-kill)',
      'programs/nodes/.*',
    ],
    timeLimitMs: 30_000,
    workers: 2,
    processors: 0.75,
    variants: [
      ...['20.19.2', '26.10.0'].map((node) => ({ name: `Node ${node}`, node })),
      // What the oldest and the newest have in common, those between them have too. These call Node's internals.
      ...['22.23.3', '24.21.0'].map((node) => ({
        name: `Node ${node}`,
        node,
        files: [
          'service/system/(door|http-limits|package)',
          'service/faults/socket-path',
          'unit/shared/node-internals/.*',
          'unit/(shared/log/output|primary/cli/terminate/tree-kill)',
          'programs/nodes/.*',
        ],
      })),
    ],
  },
  /** The SDKs that people use, under a newer Node. */
  sdks: { files: ['programs/sdks/.*'], timeLimitMs: 120_000, workers: 1, processors: 0.5, needs: ['curl', 'pip3'] },
  /** What others have written to check a service by. `programs/standards/expected.ts` has what fails, and why. */
  standards: { files: ['programs/standards/.*'], timeLimitMs: 120_000, workers: 1, processors: 0.5 },
  /** Two lines of releases that have SQLite. Under the older one only how SQLite itself is called: the statements are the same. */
  store: {
    files: ['programs/store/.*'],
    timeLimitMs: 120_000,
    workers: 2,
    processors: 1,
    needs: ['redis-server'],
    variants: [
      { name: 'Node 24.21.0', node: '24.21.0' },
      {
        name: 'Node 22.23.3',
        node: '22.23.3',
        files: ['programs/store/sqlite'],
        tests: '^(A store \\(SQLite\\)|The files of SQLite|Usage in a file|Changes that share|A service)',
      },
    ],
  },
  /** The console in a real Chromium, and what a browser can do differently in a real Firefox. */
  console: {
    files: ['programs/console/.*'],
    timeLimitMs: 60_000,
    workers: 2,
    processors: 1,
    needs: ['chromium', 'firefox-esr', 'redis-server'],
    variants: [
      { name: 'Chromium' },
      {
        name: 'Firefox',
        files: ['programs/console/(access|ask|conversations|shell)'],
        // Storage, reloads, the clipboard, files, keys, aborted requests, the cache, formulas and narrow pages.
        tests: `(${[
          ...[
            'in the tab only',
            'across a reload',
            'after a reload',
            'copies code',
            'by paste and by drop',
            'keyboard only',
          ],
          ...[
            'stops an answer',
            'formulas',
            'renamed in place',
            'narrow page',
            'The console in a browser',
            'as down while',
          ],
        ].join('|')})`,
        env: { TESTED_BROWSER: 'firefox' },
      },
    ],
  },
  /** deploy/fleet: three hosts behind a real HAProxy, with a real Redis. */
  fleet: {
    files: ['programs/fleet/.*'],
    timeLimitMs: 60_000,
    workers: 1,
    processors: 0.5,
    needs: ['haproxy', 'redis-server'],
  },
  /** deploy/monitoring, with promtool and a real Prometheus. */
  monitoring: {
    files: ['programs/monitoring/.*'],
    timeLimitMs: 180_000,
    workers: 1,
    processors: 0.5,
    needs: ['prometheus', 'promtool'],
  },
  /** The units of deploy/systemd under a real systemd, in namespaces of its own. */
  systemd: {
    files: ['programs/systemd/.*'],
    timeLimitMs: 120_000,
    workers: 1,
    processors: 0.25,
    needs: ['haproxy', 'ip', 'redis-server', 'ss'],
  },
  /** The package of Debian: installed, upgraded under load and purged under a real systemd. */
  deb: { files: ['programs/deb/.*'], timeLimitMs: 120_000, workers: 1, processors: 0.75, needs: ['curl', 'lintian'] },
  /** The commands of the README, with a stopwatch to the first answer. */
  'first-minute': { command: ['.ci/first-minute'], processors: 0.75, needs: ['chromium', 'curl'] },
  /** What people see at a terminal. */
  terminal: { files: ['programs/terminal/.*'], timeLimitMs: 60_000, workers: 2, processors: 1, needs: ['ss', 'tmux'] },
  /** Containers of the image. */
  image: { command: ['test/programs/image/run'], processors: 1, needs: ['buildah', 'debootstrap', 'ip'] },
  /** A release, tried as a user gets it. */
  production: { command: ['.ci/production'], processors: 1, needs: ['chromium', 'tmux'] },
  /** deploy/proxy: Caddy and nginx in front of the service, with TLS. */
  proxy: { files: ['programs/proxy/.*'], timeLimitMs: 60_000, workers: 1, processors: 1, needs: ['caddy', 'nginx'] },
  /** 100,000 random sequences. */
  properties: {
    files: ['unit/properties/.*'],
    timeLimitMs: 30_000,
    workers: 3,
    processors: 2,
    variants: [{ name: '20,000 sequences of each part', env: { PROPERTY_SEQUENCES: '20000' } }],
    isOnDemand: true,
  },
  /** Ten thousand programs that leave processes behind. */
  leaks: { command: ['node', 'dist/test/service/leaks/main.js'], processors: 2, isOnDemand: true },
  /** The tests that mutants must not pass: `npm run mutation`. Many a mutant makes a test wait for ever. The properties state what the examples do not repeat. */
  mutation: {
    files: [...mutatedFolders.map((folder) => `unit/${folder}/.*`), 'unit/properties/.*'],
    timeLimitMs: 5000,
    workers: 2,
    processors: 2,
    isOnDemand: true,
  },
};

/** What `jest.config.js` exports for a suite, and for a variant of it. */
export function jestConfig(name: string, variantName?: string): object {
  const suite = suites[name];
  if (suite === undefined || !('files' in suite)) throw new Error(`no suite of Jest: ${name}`);
  const variant = suite.variants?.find((each) => each.name === variantName);
  return {
    roots: ['<rootDir>/dist/test'],
    testRegex: `/dist/test/(${(variant?.files ?? suite.files).join('|')})\\.test\\.js$`,
    testEnvironment: require.resolve('./support/basics/environment.js'), // Stryker does not replace <rootDir>
    transform: {},
    // Jest loads every module anew for each test file. Each of these has fifty that no test needs.
    moduleNameMapper: {
      '^\\.\\./locales/index\\.cjs$': '<rootDir>/node_modules/zod/v4/locales/en.cjs',
      '^@opentelemetry/api$': '<rootDir>/dist/test/support/basics/no-exemplars.js',
    },
    setupFilesAfterEnv: ['<rootDir>/dist/test/support/basics/second-try.js'],
    coverageProvider: 'v8',
    testTimeout: suite.timeLimitMs,
    maxWorkers: suite.workers,
    maxConcurrency: 3, // each such test starts a service
  };
}
