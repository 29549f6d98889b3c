import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { browserPackages } from '../../tools/browser-files.js';
import { publishedDependencies, readSources, root, Source } from '../support/documents/sources.js';

const sources = readSources('src');
const known = new Map(sources.map((source) => [source.name, source]));

type SourceFilter = (source: Source) => boolean;

/** Returns a sentence for every import for which `breaks` returns true. */
function importsThat(breaks: (source: Source, target: string, isType: boolean) => boolean): string[] {
  return sources.flatMap((source) =>
    source.imports
      .filter(({ target, isType }) => breaks(source, target, isType))
      .map(({ target }) => `${source.path} imports ${target}`),
  );
}

/** Returns every place in the code that matches the pattern, outside the allowed files. */
function placesOf(pattern: RegExp, isAllowed: SourceFilter): string[] {
  return sources
    .filter((source) => !isAllowed(source))
    .flatMap((source) =>
      source.code.split('\n').flatMap((line, index) => {
        const found = pattern.exec(line)?.[0];
        return found === undefined ? [] : [`${source.path}:${index + 1} has ${found.trim()}`];
      }),
    );
}

function isOneOf(...names: readonly string[]): SourceFilter {
  return (source) => names.includes(source.name);
}

function isIn(...folders: readonly string[]): (source: Pick<Source, 'path'>) => boolean {
  return (source) => folders.some((folder) => source.path.startsWith(`src/${folder}/`));
}

function either(...filters: readonly SourceFilter[]): SourceFilter {
  return (source) => filters.some((filter) => filter(source));
}

const isMain = isOneOf('src/primary/main', 'src/worker/main');
const isCommandMain = isOneOf('src/command/main');
const isTerminal = isOneOf('src/command/base/terminal');
/** The demo is a program like any other model CLI: started, never imported. */
const isDemo = isIn('features/demo/program');

/** Contracts that other folders implement or use, apart from the implementations. */
const contracts = ['src/primary/cli/contract', 'src/primary/store/contract'];

describe('The imports', () => {
  it('are all detected', () => {
    expect(known.get('src/primary/workers/workers')?.imports).toEqual(
      expect.arrayContaining([
        { target: 'node:cluster', isType: false },
        { target: 'src/shared/clock', isType: true },
        { target: 'src/primary/workers/worker-handle', isType: false },
        { target: 'src/primary/workers/worker-handle', isType: false },
      ]),
    );
    expect(importsThat((_, target) => target.startsWith('src/') && !known.has(target))).toEqual([]);
    expect(importsThat(() => true).length).toBeGreaterThan(2 * sources.length);
  });

  it('form no cycle of files', () => {
    const graph = new Map(
      sources.map(({ name, imports }) => [name, imports.filter(({ isType }) => !isType).map(({ target }) => target)]),
    );
    expect(inCircles(graph)).toEqual([]);
  });

  it('form no cycle of files around a job, including type imports', () => {
    const jobs = sources.filter(isIn('primary/jobs'));
    expect(jobs.length).toBeGreaterThan(20);
    expect(inCircles(new Map(jobs.map(({ name, imports }) => [name, imports.map(({ target }) => target)])))).toEqual(
      [],
    );
  });

  it('form no cycle of folders in the primary, where only the composing files are outside a folder', () => {
    const primary = sources.filter(isIn('primary'));
    const graph = new Map<string, string[]>();
    for (const { name, imports } of primary) {
      const room = roomOf(name);
      const targets = imports.map(({ target }) => roomOf(target)).filter((target) => target !== room);
      graph.set(room, [...(graph.get(room) ?? []), ...targets]);
    }
    expect(inCircles(graph)).toEqual([]);
    const loose = primary.filter(({ path }) => path.split('/').length === 3);
    expect(loose.map(({ path }) => path).toSorted()).toEqual(
      ['compose', 'main', 'service'].map((name) => `src/primary/${name}.ts`),
    );
  });

  it('form no cycle of folders between the parts of a model CLI, including type imports', () => {
    const graph = new Map<string, string[]>();
    for (const source of sources.filter(isIn('primary/cli'))) {
      const [folder, targets] = [folderOf(source), source.imports.map(({ target }) => folderOf({ name: target }))];
      graph.set(folder, [...(graph.get(folder) ?? []), ...targets.filter((target) => target !== folder)]);
    }
    expect(graph.size).toBeGreaterThan(7);
    expect(inCircles(graph)).toEqual([]);
  });

  it('separate worker and primary, and shared from both', () => {
    const crosses = (source: Source, target: string) =>
      (isIn('worker')(source) && target.startsWith('src/primary/')) ||
      (isIn('primary')(source) && target.startsWith('src/worker/')) ||
      (isIn('shared')(source) && !target.startsWith('src/shared/') && target.startsWith('src/'));
    expect(importsThat(crosses)).toEqual([]);
  });

  it('let the command start the service and list the verbs of features, and import nothing else of it', () => {
    const isAllowed = (source: Source, target: string) =>
      !target.startsWith('src/') ||
      target.startsWith('src/command/') ||
      target.startsWith('src/shared/') ||
      // Options of keys, kinds of model CLIs and kinds of stores may belong to features.
      (['src/command/keys-file/key-options', 'src/command/verbs/model-clis', 'src/command/verbs/store'].includes(
        source.name,
      ) &&
        target === 'src/features') ||
      (source.name === 'src/command/verbs/serve' && target === 'src/primary/main') ||
      (source.name === 'src/command/command-line' && target === 'src/features');
    const leaves = (source: Source, target: string) => isIn('command')(source) && !isAllowed(source, target);
    const isFeature = (source: Source) => /^src\/features(\/|$)/.test(source.name);
    const enters = (source: Source, target: string) =>
      target.startsWith('src/command/') &&
      !isIn('command')(source) &&
      !(isFeature(source) && target.startsWith('src/command/base/'));
    expect(importsThat((source, target) => leaves(source, target) || enters(source, target))).toEqual([]);
    const starters = sources.filter(({ imports }) => imports.some(({ target }) => target === 'src/primary/main'));
    expect(starters.map(({ name }) => name)).toEqual(['src/command/verbs/serve']);
    for (const { text } of starters) expect(text).toContain("await import('../../primary/main.js')");
  });

  it('add no side effect to the views of the command', () => {
    const isPure = (target: string) =>
      target.startsWith('src/command/render/') || ['src/shared/text/format', 'src/shared/text/paint'].includes(target);
    const strays = (source: Source, target: string, isType: boolean) =>
      isIn('command/render')(source) && !isType && !isPure(target);
    expect(importsThat(strays)).toEqual([]);
  });

  it('separate the demo program from everything else', () => {
    const leaves = (source: Source, target: string) =>
      isDemo(source) && !target.startsWith('src/features/demo/program/') && !target.startsWith('node:');
    const enters = (source: Source, target: string) =>
      !isDemo(source) && target.startsWith('src/features/demo/program/');
    expect(importsThat((source, target) => leaves(source, target) || enters(source, target))).toEqual([]);
  });

  it('separate the browser code, which only imports types of the API and of its tables', () => {
    const isForBrowsers = isIn('console');
    const leaves = (source: Source, target: string, isType: boolean) =>
      isForBrowsers(source) &&
      !target.startsWith('src/console/') &&
      !browserPackages.includes(packageOf(target)) &&
      !(isType && /^src\/shared\/(?:api|tables)\//.test(target));
    const enters = (source: Source, target: string) => !isForBrowsers(source) && target.startsWith('src/console/');
    expect(importsThat((source, target, isType) => leaves(source, target, isType) || enters(source, target))).toEqual(
      [],
    );
    const packages = browserPackages.filter((name) => name !== 'eventsource-parser'); // the command uses it, too
    const foreign = importsThat((source, target) => !isForBrowsers(source) && packages.includes(packageOf(target)));
    expect(foreign).toEqual([]);
    const ofNode = /\b(process|Buffer|require|__dirname|__filename|global|setImmediate)\b/;
    expect(placesOf(ofNode, (source) => !isForBrowsers(source))).toEqual([]);
  });

  it.each<[string, SourceFilter]>([
    ['node:cluster', either(isOneOf('src/primary/main', 'src/shared/ipc/cluster-channel'), isIn('primary/workers'))],
    // The first three start and end model CLIs. `peer-credentials` asks the kernel for what Node does not provide. The
    // others start short-lived tools of the host, or the login of a model CLI in a terminal.
    [
      'node:child_process',
      either(
        isOneOf('src/primary/cli/process/launcher', 'src/features/cgroups/containment'),
        isIn('primary/cli/terminate'),
        isOneOf('src/primary/lifecycle/host', 'src/primary/lifecycle/systemd'),
        isOneOf(
          'src/shared/node-internals/peer-credentials',
          'src/command/verbs/serve',
          'src/features/accounts/command',
        ),
      ),
    ],
    ['tree-kill', isIn('primary/cli/terminate')],
    ['piscina', isIn('shared/threads')],
    ['ajv', isOneOf('src/primary/threads/schema-thread')],
    ['ioredis', isOneOf('src/features/redis/redis-link')],
    ['express', isIn('worker')],
    ['prom-client', (source) => /metrics|scrape|http\/exchange/.test(source.path)],
  ])('include %s only in the intended places', (module, isAllowed) => {
    const bare = module.replace('node:', '');
    const strays = (source: Source, target: string, isType: boolean) =>
      [module, bare].includes(packageOf(target)) && !isType && !isAllowed(source);
    expect(importsThat(strays)).toEqual([]);
  });

  it('load the code for several hosts only when their store is opened', () => {
    const enters = (source: Source, target: string) =>
      target.startsWith('src/features/redis/') &&
      !isIn('features/redis')(source) &&
      !(source.name === 'src/features' && target === 'src/features/redis/feature');
    expect(importsThat(enters)).toEqual([]);
    const { text = '' } = known.get('src/features/redis/feature') ?? {};
    expect(text).not.toMatch(/from '\.\/hosts\.js'/); // only `await import` remains
    expect(text).toContain("await import('./hosts.js')");
  });

  it('separate the store contract from the primary', () => {
    const leaves = (source: Source, target: string) =>
      isIn('primary/store/contract')(source) &&
      target.startsWith('src/primary/') &&
      !target.startsWith('src/primary/store/contract/');
    expect(importsThat(leaves)).toEqual([]);
  });

  it('let a store import only its contract and shared code', () => {
    const isLower = (target: string) =>
      ['src/primary/store/', 'src/shared/'].some((folder) => target.startsWith(folder));
    // The core opens the stores of features in this form.
    const isForm = (target: string, isType: boolean) => isType && target === 'src/primary/hosts/hosts';
    const leaves = (source: Source, target: string, isType: boolean) =>
      isIn('primary/store')(source) && target.startsWith('src/') && !isLower(target) && !isForm(target, isType);
    expect(importsThat(leaves)).toEqual([]);
  });

  it('separate the processes of a model CLI from the code of adapters', () => {
    const crosses = (source: Source, target: string) =>
      isIn(...['contract', 'login', 'pool', 'process', 'terminate'].map((name) => `primary/cli/${name}`))(source) &&
      target.startsWith('src/primary/cli/adapters/');
    expect(importsThat(crosses)).toEqual([]);
  });

  it('let an adapter import only the contract, the shared code of adapters, the errors and zod', () => {
    const contract = ['adapter', 'adapter-family', 'awaited-step', 'callbacks', 'model-rules'].map(
      (name) => `src/primary/cli/contract/${name}`,
    );
    const jsonRpc = 'src/features/protocols/json-rpc';
    const strays = (source: Source, target: string) =>
      isIn(...adapterFolders)(source) &&
      !isDemo(source) &&
      !joinsAdapter.test(source.name) &&
      ![...contract, jsonRpc, 'src/shared/errors', 'zod', 'node:path'].includes(target) &&
      !target.startsWith(`${commonFolder}/`) &&
      folderOf(source) !== folderOf({ name: target });
    expect(importsThat(strays)).toEqual([]);
    const leaves = (source: Source, target: string) =>
      folderOf(source) === commonFolder &&
      ![...contract, 'src/shared/errors', 'zod'].includes(target) &&
      !target.startsWith(`${commonFolder}/`);
    expect(importsThat(leaves)).toEqual([]);
  });

  it.each(contracts)('let %s import only itself and shared code', (contract) => {
    const leaves = (source: Source, target: string) =>
      source.path.startsWith(`${contract}/`) &&
      target.startsWith('src/') &&
      !target.startsWith('src/shared/') &&
      !target.startsWith(`${contract}/`);
    expect(sources.filter(({ path }) => path.startsWith(`${contract}/`)).length).toBeGreaterThan(1);
    expect(importsThat(leaves)).toEqual([]);
  });

  it('let only the composition open a store: other code imports its contract', () => {
    const opens = (source: Source, target: string) =>
      /^src\/primary\/store\/(?!contract\/)/.test(target) && !isIn('primary/store')(source);
    expect([...new Set(importsThat(opens))].toSorted()).toEqual([
      'src/features/sqlite/open.ts imports src/primary/store/open', // the form of its faults
      'src/features/stores/memory/memory-store.ts imports src/primary/store/memory-store', // what it adds to
      'src/primary/main.ts imports src/primary/store/open',
    ]);
  });

  it('name adapters only in the registry, and the registry only in the composition', () => {
    const isOfAdapters = isIn('primary/cli/adapters');
    const names = (source: Source, target: string) =>
      isIn(...adapterFolders)({ path: `${target}.ts` }) &&
      !isIn(...adapterFolders)(source) &&
      !['src/primary/cli/adapters/registry', 'src/features'].includes(source.name);
    expect(importsThat(names)).toEqual([]);
    // The set-up report composes a service to inspect it.
    const composes = isOneOf('src/primary/main', 'src/features/setup-report/check');
    const chooses = (source: Source, target: string) =>
      target.startsWith('src/primary/cli/adapters/') &&
      !target.startsWith(`${commonFolder}/`) &&
      !isOfAdapters(source) &&
      !composes(source);
    expect(importsThat(chooses)).toEqual([]);
  });

  it('include zod only where data arrives: configuration, HTTP, messages, CLI output, answers to the command', () => {
    const { imports = [] } = known.get('src/shared/ipc/protocol') ?? {};
    const isProtocol = isOneOf(...imports.map(({ target }) => target));
    const isEntrance = either(
      isIn('features', 'shared/config', 'shared/api', 'shared/features', 'shared/ipc', 'primary/cli/adapters'),
      isProtocol,
      isOneOf(
        'src/shared/background',
        'src/shared/conversation',
        'src/shared/errors',
        'src/shared/config/product',
        'src/command/base/client',
        'src/command/verbs/answer',
        'src/primary/cli/model-sizes',
      ),
    );
    const strays = (source: Source, target: string, isType: boolean) =>
      target === 'zod' && !isEntrance(source) && !(isType && source.name === 'src/worker/http/body');
    expect(importsThat(strays)).toEqual([]);
  });

  it('need only the dependencies of the published package, and use all of them', () => {
    const packages = publishedDependencies();
    const isPackage = (target: string) => !target.startsWith('node:') && !target.startsWith('src/');
    expect(importsThat((_, target) => isPackage(target) && !packages.includes(packageOf(target)))).toEqual([]);
    const used = new Set(sources.flatMap(({ imports }) => imports.map(({ target }) => packageOf(target))));
    const isFont = (name: string) => name.startsWith('@fontsource/'); // a style sheet names the font
    expect(packages.filter((name) => !used.has(name) && !isFont(name))).toEqual([]);
  });
});

/** Returns the nodes on a cycle, or with a path to one. */
function inCircles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const left = new Map(graph);
  for (;;) {
    const ground = [...left].filter(([, targets]) => targets.every((target) => !left.has(target)));
    if (ground.length === 0) return [...left.keys()];
    for (const [name] of ground) left.delete(name);
  }
}

/**
 * Returns the folder of a file, such as `src/primary/jobs`; the file itself if it is in none, such as
 * `src/primary/main`.
 */
function roomOf(name: string): string {
  return contracts.find((contract) => name.startsWith(`${contract}/`)) ?? name.split('/').slice(0, 3).join('/');
}

/** Code that any adapter may use. */
const commonFolder = 'src/primary/cli/adapters/common';
const adapterFolders = [
  'primary/cli/adapters/claude',
  ...['acp', 'codex', 'command', 'demo', 'file'].map((name) => `features/${name}`),
];
/** Files of these features that join an adapter with the configuration, and the port at which agents send requests. */
const joinsAdapter =
  /^src\/features\/(?:\w+\/(?:feature|shared)|acp\/(?:agents|callback-server)|command\/models|file\/adapter-module)$/;

/** Returns the package of an import: `@scope/name` or `name`. */
function packageOf(target: string): string {
  return target.split('/', target.startsWith('@') ? 2 : 1).join('/');
}

describe('Side effects', () => {
  it('use the environment, signals, and the process exit only in the main files, and in the owner of the exit', () => {
    const pattern = /\bprocess\s*\.\s*(env|on|once|off|exit|exitCode|abort|stdout|stderr|stdin|chdir|umask)\b/;
    const isFirst = isOneOf('src/shared/node-version'); // part of each main file; exits under an old Node
    const isEnd = isOneOf('src/primary/lifecycle/process-end');
    expect(placesOf(pattern, either(isMain, isEnd, isCommandMain, isTerminal, isDemo, isFirst))).toEqual([]);
  });

  it('are separated in the command: environment and arguments in its main file, streams and signals in its terminal', () => {
    expect(placesOf(/\bprocess\s*\.\s*(on|once|off|stdout|stderr|stdin)\b/, (s) => !isCommandMain(s))).toEqual([]);
    expect(placesOf(/\bprocess\s*\.\s*(env|argv)\b/, (s) => !isTerminal(s))).toEqual([]);
    const ends = /\bprocess\s*\.\s*exit\b/;
    // The reader of its output has closed the pipe.
    expect(placesOf(ends, (source) => !isTerminal(source))).toHaveLength(1);
  });

  it('are present in both main files of the service', () => {
    expect(sources.filter(isMain)).toHaveLength(2);
    for (const main of sources.filter(isMain)) expect(main.code).toMatch(/\bprocess\.on\(/);
  });

  it('have time only from the clock', () => {
    // Sockets have a separate time limit: only the system knows whether a client still reads.
    const pattern =
      /(?<![sS]ocket\.)\b(setTimeout|setInterval|setImmediate|Date\.now|performance\.now|new Date\(\)|process\.(hrtime|uptime)|AbortSignal\.timeout)\b/;
    expect(placesOf(pattern, either(isOneOf('src/shared/clock', 'src/console/base/page-clock'), isDemo))).toEqual([]);
    const isHistogram = isOneOf('src/features/live-status/last-hour'); // needs no time
    const isClock = (target: string) => /^(node:)?timers|^(node:)?perf_hooks$/.test(target);
    expect(importsThat((source, target) => isClock(target) && !isHistogram(source))).toEqual([]);
  });

  it('are built where the program is put together, and passed to everything else', () => {
    const isSetupReport = isOneOf('src/features/setup-report/check'); // composes parts to inspect them
    const isParts = isOneOf('src/primary/compose', 'src/primary/service', 'src/primary/cli/model-cli');
    const isFeature = ({ name }: Source) => /^src\/features\/[^/]+\/primary$/.test(name);
    const isThread = isOneOf('src/shared/process/chase-thread'); // no clock can be passed to a thread
    const isComposition = either(isMain, isCommandMain, isParts, isFeature, isSetupReport, isThread);
    const isDefinition = isOneOf('src/shared/clock', 'src/shared/log/logger');
    const parts = [
      ...['StandbyKeeper', 'CliProgram', 'ConversationStore', 'Workers', 'HttpMetrics', 'HttpServer', 'JobRunner'],
      ...['Launcher', 'Listeners', 'LogOutput', 'PrimaryMetrics', 'ProcessPool', 'RateLimit', 'CliHealth', 'Scrape'],
      ...[
        'Clients',
        'JournaledConversations',
        'KeyAttempts',
        'KeyRing',
        'Service',
        'Status',
        'Supervisor',
        'Systemd',
        'WaitingRoom',
      ],
      ...['LastHour', 'SchemaChecker', 'TokenCounter', 'UsageLedger', 'WrongKeys'],
    ];
    const effects = new RegExp(String.raw`\b(systemClock|createLogger\(|new (${parts.join('|')})\()`);
    expect(placesOf(effects, either(isComposition, isDefinition))).toEqual([]);
    const declared = new Set(sources.flatMap(({ typeNames }) => typeNames));
    expect(parts.filter((part) => !declared.has(part))).toEqual([]);
  });

  it('never create HTML or code from text in a page', () => {
    const pattern =
      /\b(innerHTML|outerHTML|srcdoc|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|DOMParser|eval|new Function)\b/i;
    expect(placesOf(pattern, (source) => !isIn('console')(source))).toEqual([]);
  });

  it('leave what is inside Node to one folder', () => {
    // Node's internals: properties with an underscore, channels and hooks, flags of V8, and fields of its messages.
    const names =
      /\._(?!meta\b)[a-z]\w*|\b_handle\b|\bprocess\s*\.\s*(binding|_\w+)|\b(setBlocking|setFlagsFromString)\b/;
    const isInternals = isIn('shared/node-internals');
    expect(placesOf(names, either(isInternals, isIn('console')))).toEqual([]);
    const inText = /NODE_HANDLE|NODE_CHANNEL|PIPEWRAP|--expose-gc|collectGarbage|--semi-space-growth/;
    expect(sources.filter((source) => !isInternals(source) && inText.test(source.text))).toEqual([]);
    const modules = ['node:async_hooks', 'node:diagnostics_channel', 'node:inspector', 'node:vm', 'node:v8'];
    expect(importsThat((source, target) => modules.includes(target) && !isInternals(source))).toEqual([]);
    expect(known.get('src/shared/node-internals/connections')?.code).toMatch(names); // else the pattern matches nothing
  });

  it('never block the event loop', () => {
    const pattern = /\b(\w+Sync)\(|Atomics\.wait\b/;
    const atStart = isOneOf('src/shared/config/product', 'src/shared/log/logger');
    const inMemory = isOneOf('src/shared/process/proc', 'src/features/documents/pdf'); // of bounded sizes
    // These run in threads of their own, which may wait for a disk or a process.
    const inThread = isOneOf(
      'src/features/sqlite/database',
      'src/features/sqlite/schema',
      'src/shared/process/chase-thread',
    );
    expect(placesOf(pattern, either(atStart, inMemory, inThread, isDemo))).toEqual([]);
  });
});

describe('The main files', () => {
  it('have only syntax that an old Node.js can parse, because they report its version', () => {
    const mainFiles = ['shared/node-version', 'primary/main', 'command/main', 'worker/main'].map(
      (name) => `src/${name}`,
    );
    expect(mainFiles.filter((name) => !known.has(name))).toEqual([]);
    const newerSyntax = /\?\.(?!\d)|\?\?|[|&]{2}=|#\w+\(|^\s*static \{|^await\b/;
    expect(placesOf(newerSyntax, (source) => !mainFiles.includes(source.name))).toEqual([]);
  });
});

describe('The code', () => {
  it.each<[string, RegExp]>([
    ['any', /(?<![\w.$])any(?=\s*[;,)>\]}|&=[]|$)/],
    ['default exports', /^\s*export\s+default\b|\bas default\b/],
    ['module-level let or var', /^(export\s+)?(let|var)\b/],
    [
      'module-level collections that grow',
      /^(export\s+)?const .*=\s*(new (Map|Set|WeakMap|WeakSet)\b[^(]*\(\)|\[\]|\{\});/,
    ],
  ])('has no %s', (_, pattern) => {
    expect(placesOf(pattern, ({ path }) => path.endsWith('packages.d.ts'))).toEqual([]); // the exports of packages
  });

  /**
   * Each part receives its listener when it is created. The exceptions are created before their listeners: the store,
   * and the parts shared by several hosts.
   */
  it('has hardly a listener that is set later: four, of which that of a store has two implementations', () => {
    const settable = /^ {2}#(on[A-Z]\w*|\w*[oO]bserver|\w*[lL]istener|notify\w*)\b.*[^=]=[^=]/;
    const lines = sources.flatMap(({ path, code }) =>
      code.split('\n').flatMap((line) => (settable.test(line) ? [`${path} ${line.trim().split(/\W/)[1]}`] : [])),
    );
    expect(lines.toSorted()).toEqual([
      'src/features/redis/job-messages.ts listener',
      'src/features/redis/redis-connection.ts observer',
      'src/features/redis/redis-connection.ts onConnected',
      'src/features/redis/redis-conversations.ts observer',
      'src/features/sqlite/client.ts observer',
    ]);
    expect(sources.filter(({ code }) => /\blinkBack\b/.test(code))).toEqual([]);
  });

  it('does not disable the type checker', () => {
    const switches = /@ts-(ignore|nocheck|expect-error)/;
    expect(sources.filter(({ text }) => switches.test(text)).map(({ path }) => path)).toEqual([]);
  });

  it('declares no type name twice', () => {
    const places = new Map<string, string[]>();
    for (const { path, typeNames } of sources) {
      for (const name of typeNames) places.set(name, [...(places.get(name) ?? []), path]);
    }
    expect(places.size).toBeGreaterThan(sources.length);
    expect([...places].filter(([, paths]) => paths.length > 1)).toEqual([]);
  });

  it('has files of at most 500 lines', () => {
    const sizes = sources.map(({ path, lineCount }) => ({ path, lineCount }));
    expect(sizes.filter(({ lineCount }) => lineCount > 500)).toEqual([]);
  });

  it('has functions of at most 50 lines', () => {
    const functions = sources.flatMap((source) => source.functions);
    expect(functions.length).toBeGreaterThan(2 * sources.length);
    expect(functions.filter(({ lines }) => lines > 50)).toEqual([]);
  });

  // The linter does not see a name that a function uses before the name is defined.
  it('uses no name before its definition where the parts of the primary are created', () => {
    const isComposition = isOneOf('src/primary/compose', 'src/primary/service', 'src/primary/cli/model-cli');
    expect(sources.filter(isComposition).flatMap(namesUsedEarly)).toEqual([]);
    const lines = ['() => {', '  run(() => b, this.d, { c });', '  const { b, e: c } = {};', '  this.d = f;', '}'];
    expect(namesUsedEarly(new Source('early.ts', lines.join('\n')))).toEqual([
      'early.ts:3 b',
      'early.ts:3 c',
      'early.ts:4 this.d',
    ]);
  });
});

/** Returns the constants and fields that an earlier line of the same block mentions. Relies on the formatter's layout. */
function namesUsedEarly({ path, code }: Source): string[] {
  const declarations = code.matchAll(/^( +)(?:(?:const|let) (\{[^}]*\}|\[[^\]]*\]|\w+)|(this\.#?\w+) = )/gm);
  return [...declarations].flatMap(({ 1: indent = '', 2: pattern = '', 3: field, index }) => {
    const lines = code.slice(0, index).split('\n').slice(0, -1);
    const opening = lines.findLastIndex((line) => /\S/.test(line) && !line.startsWith(indent));
    const earlier = lines.slice(opening + 1).join('\n');
    const constants = [...pattern.matchAll(/\w+(?= *(?:[,}\]]|$))/g)].map(([name]) => name);
    const uses = (name: string) => new RegExp(`(?<![.\\w#])${name}\\b(?!\\??:)`).test(earlier);
    return [...constants, ...(field === undefined ? [] : [field])]
      .filter(uses)
      .map((name) => `${path}:${lines.length + 1} ${name}`);
  });
}

describe('The layout', () => {
  it('has no cycle of folders, including type imports', () => {
    const graph = new Map<string, Set<string>>();
    for (const source of sources) {
      const folder = folderOf(source);
      const others = source.imports
        .filter(({ target }) => known.has(target))
        .map(({ target }) => folderOf({ name: target }));
      graph.set(folder, new Set([...(graph.get(folder) ?? []), ...others.filter((other) => other !== folder)]));
    }
    expect(circlesIn(graph).map((folders) => folders.join(' '))).toEqual([]);
  });
});

/** Returns the groups of names that reach each other, each sorted. */
function circlesIn(graph: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const reachOf = new Map([...graph.keys()].map((name) => [name, reachedFrom(name, graph)]));
  const groups = [...graph.keys()].map((name) =>
    [...(reachOf.get(name) ?? [])].filter((other) => reachOf.get(other)?.has(name)).toSorted(),
  );
  return [...new Map(groups.filter(({ length }) => length > 1).map((group) => [group.join(' '), group])).values()];
}

function reachedFrom(start: string, graph: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
  const reached = new Set<string>();
  const left = [...(graph.get(start) ?? [])];
  for (let name = left.pop(); name !== undefined; name = left.pop()) {
    if (reached.has(name)) continue;
    reached.add(name);
    left.push(...(graph.get(name) ?? []));
  }
  return reached;
}

describe('Every file that decides something', () => {
  /** Files tested from outside, as a program or over HTTP, with one of the tests that do so. */
  const fromOutside: Readonly<Record<string, string>> = {
    'src/command/': 'test/programs/terminal/command.test.ts',
    'src/features/accounts/command': 'test/programs/terminal/accounts.test.ts',
    'src/features/accounts/worker': 'test/service/faults/accounts.test.ts',
    'src/features/audit/worker': 'test/service/system/made-keys.test.ts',
    'src/features/priority/primary': 'test/service/system/priority.test.ts',
    'src/features/background/primary': 'test/unit/primary/api/handlers.test.ts',
    'src/features/background/worker': 'test/service/system/jobs.test.ts',
    'src/primary/jobs/job-entry': 'test/unit/primary/api/handlers.test.ts',
    'src/primary/jobs/local-jobs': 'test/unit/features/background/client-jobs.test.ts',
    'src/worker/jobs/file-references': 'test/unit/features/files/references.test.ts',
    'src/features/why/worker': 'test/service/system/jobs.test.ts',
    'src/features/steering/': 'test/service/system/steering.test.ts',
    'src/features/documents/feature': 'test/service/faults/documents.test.ts',
    'src/features/documents/primary': 'test/service/faults/documents.test.ts',
    'src/features/documents/document-hooks': 'test/unit/features/documents/document-texts.test.ts',
    'src/features/documents/worker': 'test/service/faults/documents.test.ts',
    'src/features/search/': 'test/service/system/web-search.test.ts',
    'src/features/courses/': 'test/service/system/courses.test.ts',
    'src/features/keys-api/': 'test/service/system/made-keys.test.ts',
    'src/features/usage/command': 'test/programs/terminal/command.test.ts',
    'src/features/usage/worker': 'test/service/system/usage.test.ts',
    'src/features/webhooks/feature': 'test/service/faults/webhooks.test.ts',
    'src/console/': 'test/programs/console/shell.test.ts',
    'src/features/live-status/worker': 'test/service/faults/status-stream.test.ts',
    'src/features/web-console/': 'test/service/system/console.test.ts',
    'src/features/demo/program/': 'test/unit/features/demo/program/program.test.ts',
    'src/worker/app': 'test/service/system/door.test.ts',
    'src/worker/main': 'test/service/system/life.test.ts',
    'src/worker/api/': 'test/service/system/door.test.ts',
    'src/primary/threads/schema-thread': 'test/unit/primary/threads/schema-checker.test.ts',
    'src/features/redis/': 'test/programs/store/redis.test.ts',
    'src/features/sqlite/': 'test/programs/store/sqlite.test.ts',
    'src/primary/threads/token-thread': 'test/unit/primary/threads/token-counter.test.ts',
    'src/shared/process/chase-thread': 'test/unit/shared/process/chase.test.ts',
  };

  function isTested(source: Source): boolean {
    const outside = Object.entries(fromOutside).find(([start]) => source.name.startsWith(start));
    const twin = source.path.replace(/^src\/(.*)\.m?ts$/, 'test/unit/$1.test.ts');
    return [twin, ...(outside ?? []).slice(1)].some((test) => existsSync(join(root, test)));
  }

  /** Whether the file is tested together with another: a neighbour that imports it, or its only importer. */
  function isTestedAsPart(source: Source): boolean {
    const importers = sources.filter(({ imports }) =>
      imports.some(({ target, isType }) => target === source.name && !isType),
    );
    const wholes =
      importers.length === 1 ? importers : importers.filter((other) => folderOf(other) === folderOf(source));
    return wholes.some((whole) => isTested(whole) || isTestedAsPart(whole));
  }

  it('has a test at the same path, or belongs to a file that has one', () => {
    const untested = sources.filter((source) => source.decides && !isTested(source) && !isTestedAsPart(source));
    expect(untested.map(({ path }) => path)).toEqual([]);
  });

  it('is distinguished from files with only types and constants', () => {
    expect(['src/shared/job', 'src/shared/phase', 'src/shared/ipc/protocol'].map(decides)).toEqual([
      false,
      false,
      false,
    ]);
    expect(['src/shared/phase', 'src/shared/ipc/peer', 'src/shared/config/addresses'].map(decides)).toEqual([
      false,
      true,
      true,
    ]);
    expect(sources.filter((source) => source.decides).length).toBeGreaterThan(sources.length / 2);
  });

  function decides(name: string): boolean | undefined {
    return known.get(name)?.decides;
  }
});

function folderOf({ name }: Pick<Source, 'name'>): string {
  return name.slice(0, name.lastIndexOf('/'));
}
