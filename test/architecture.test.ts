import { readSources, type Source } from './support/sources.js';

const sources = readSources('src');

/** Every import that `breaks` says is against the rule, as a sentence. */
function importsThat(breaks: (source: Source, target: string, isType: boolean) => boolean): string[] {
  return sources.flatMap((source) =>
    source.imports
      .filter(({ target, isType }) => breaks(source, target, isType))
      .map(({ target }) => `${source.path} imports ${target}`),
  );
}

/** Every place in the code, outside the files allowed, where the pattern stands. */
function placesOf(pattern: RegExp, isAllowed: (source: Source) => boolean): string[] {
  return sources
    .filter((source) => !isAllowed(source))
    .flatMap((source) =>
      source.code.split('\n').flatMap((line, index) => {
        const found = pattern.exec(line)?.[0];
        return found === undefined ? [] : [`${source.path}:${index + 1} has ${found.trim()}`];
      }),
    );
}

function isOneOf(...names: readonly string[]): (source: Source) => boolean {
  return (source) => names.includes(source.name);
}

function isIn(...folders: readonly string[]): (source: Source) => boolean {
  return (source) => folders.some((folder) => source.path.startsWith(`src/${folder}/`));
}

const isMain = isOneOf('src/primary/main', 'src/worker/main');
/** The program that people type: its bin, and what stands for their terminal. */
const isCommandMain = isOneOf('src/command/main');
const isTerminal = isOneOf('src/command/terminal');
/** A program like any other model CLI: it is started, never imported. */
const isDemo = isIn('demo');

describe('what may import what', () => {
  it('sees the imports there are', () => {
    const { imports = [] } = sources.find(({ name }) => name === 'src/primary/fleet/fleet') ?? {};
    expect(imports).toEqual(
      expect.arrayContaining([
        { target: 'node:cluster', isType: false },
        { target: 'src/shared/clock', isType: true },
        { target: 'src/primary/fleet/seat', isType: false },
        { target: 'src/primary/fleet/worker-peer', isType: false },
      ]),
    );
    const known = new Set(sources.map(({ name }) => name));
    expect(importsThat((_, target) => target.startsWith('src/') && !known.has(target))).toEqual([]);
    expect(importsThat(() => true).length).toBeGreaterThan(2 * sources.length);
  });

  it('keeps worker and primary apart, and shared apart from both', () => {
    const crosses = (source: Source, target: string) =>
      (isIn('worker')(source) && target.startsWith('src/primary/')) ||
      (isIn('primary')(source) && target.startsWith('src/worker/')) ||
      (isIn('shared')(source) && !target.startsWith('src/shared/') && target.startsWith('src/'));
    expect(importsThat(crosses)).toEqual([]);
  });

  it('has no circle among the rooms of the primary: its folders, and the files beside them', () => {
    const rooms = new Map<string, Set<string>>();
    for (const { name, imports } of sources.filter(isIn('primary'))) {
      const room = roomOf(name);
      const targets = imports.map(({ target }) => roomOf(target)).filter((other) => other !== room);
      rooms.set(room, new Set([...(rooms.get(room) ?? []), ...targets]));
    }
    const isGround = (room: string) => [...(rooms.get(room) ?? [])].every((target) => !rooms.has(target));
    for (
      let ground = [...rooms.keys()].filter(isGround);
      ground.length > 0;
      ground = [...rooms.keys()].filter(isGround)
    ) {
      for (const room of ground) rooms.delete(room);
    }
    expect([...rooms.keys()]).toEqual([]);
  });

  it('keeps the command apart from the service, which it can start and ask but never holds', () => {
    const isDoor = isOneOf('src/command/serve', 'src/command/check');
    const isAllowed = (source: Source, target: string) =>
      !target.startsWith('src/') ||
      target.startsWith('src/command/') ||
      target.startsWith('src/shared/') ||
      (isDoor(source) && target === 'src/primary/main');
    const leaves = (source: Source, target: string) => isIn('command')(source) && !isAllowed(source, target);
    const enters = (source: Source, target: string) => !isIn('command')(source) && target.startsWith('src/command/');
    expect(importsThat((source, target) => leaves(source, target) || enters(source, target))).toEqual([]);
    const doors = sources.filter(({ imports }) => imports.some(({ target }) => target === 'src/primary/main'));
    expect(doors.map(({ name }) => name).sort()).toEqual(['src/command/check', 'src/command/serve']);
    for (const door of doors) expect(door.text).toContain("await import('../primary/main.js')");
  });

  it('keeps what the command shows pure: no effect is imported there', () => {
    const strays = (source: Source, target: string, isType: boolean) =>
      isIn('command/render')(source) && !isType && !target.startsWith('src/command/render/');
    expect(importsThat(strays)).toEqual([]);
  });

  it('leaves nothing in the demo program of the house around it', () => {
    const leaves = (source: Source, target: string) =>
      isDemo(source) && !target.startsWith('src/demo/') && !target.startsWith('node:');
    const enters = (source: Source, target: string) => !isDemo(source) && target.startsWith('src/demo/');
    expect(importsThat((source, target) => leaves(source, target) || enters(source, target))).toEqual([]);
  });

  it.each<[string, (source: Source) => boolean]>([
    ['node:cluster', isOneOf('src/primary/main', 'src/primary/fleet/fleet', 'src/shared/ipc/channel')],
    // Processes are started where they are also ended; the two others are short-lived helpers of the host.
    [
      'node:child_process',
      isOneOf('src/primary/cli/process-tree', 'src/primary/host/probe', 'src/primary/host/systemd'),
    ],
    ['tree-kill', isOneOf('src/primary/cli/process-tree')],
    ['express', isIn('worker')],
    ['prom-client', (source) => /metrics|scrape/.test(source.path)],
  ])('has %s only where it belongs', (module, isAllowed) => {
    const bare = module.replace('node:', '');
    const strays = (source: Source, target: string, isType: boolean) =>
      (target === module || target === bare) && !isType && !isAllowed(source);
    expect(importsThat(strays)).toEqual([]);
  });

  it('lets adapters know the adapter contract, the cutting of lines, the errors and zod, and nothing else', () => {
    const known = ['src/primary/cli/adapter', 'src/primary/cli/lines', 'src/shared/errors', 'zod'];
    const strays = (source: Source, target: string) =>
      isIn('primary/cli/adapters')(source) && !known.includes(target) && !isPartOf(source, target);
    expect(importsThat(strays)).toEqual([]);
    expect(importsThat((source) => source.name === 'src/primary/cli/lines')).toEqual([]);
  });

  it('names adapters in the registry only', () => {
    const names = (source: Source, target: string) =>
      target.startsWith('src/primary/cli/adapters/') &&
      source.name !== 'src/primary/cli/registry' &&
      !isIn('primary/cli/adapters')(source);
    expect(importsThat(names)).toEqual([]);
  });

  it('has zod at the doors: configuration, HTTP, arriving messages, lines of a CLI', () => {
    const isDoor = isIn('shared/config', 'shared/api', 'shared/ipc', 'primary/cli/adapters');
    const isClient = isOneOf('src/command/client', 'src/command/job');
    const isManifest = isOneOf('src/shared/product');
    const strays = (source: Source, target: string, isType: boolean) =>
      target === 'zod' &&
      !isDoor(source) &&
      !isManifest(source) &&
      !isClient(source) &&
      !(isType && source.name === 'src/worker/http/body');
    expect(importsThat(strays)).toEqual([]);
  });
});

/** `src/primary/jobs` of all that is in it, `src/primary/service` of that file. */
function roomOf(name: string): string {
  return name.split('/').slice(0, 3).join('/');
}

/** An adapter may have files of its own beside it: `claude.ts` and `claude-lines.ts`. */
function isPartOf(source: Source, target: string): boolean {
  const adapter = /adapters\/([a-z]+)/.exec(source.path)?.[1];
  return adapter !== undefined && new RegExp(`^src/primary/cli/adapters/${adapter}(-[a-z-]+)?$`).test(target);
}

describe('effects', () => {
  it('reach the environment, signals, and the end of the process only in the two main files', () => {
    const pattern = /\bprocess\s*\.\s*(env|on|once|off|exit|exitCode|abort|stdout|stderr|stdin|chdir|umask)\b/;
    const isEdge = (source: Source) => isMain(source) || isCommandMain(source) || isTerminal(source);
    expect(placesOf(pattern, (source) => isEdge(source) || isDemo(source))).toEqual([]);
  });

  it('are parted in the command: the environment and the end in its main file, streams and signals in its terminal', () => {
    expect(placesOf(/\bprocess\s*\.\s*(on|once|off|stdout|stderr|stdin)\b/, (s) => !isCommandMain(s))).toEqual([]);
    expect(placesOf(/\bprocess\s*\.\s*(env|argv)\b/, (s) => !isTerminal(s))).toEqual([]);
    const ends = /\bprocess\s*\.\s*exit\b/;
    expect(placesOf(ends, (source) => !isTerminal(source))).toHaveLength(1); // its reader has gone
  });

  it('are spread over two main files that use them', () => {
    for (const main of sources.filter(isMain)) expect(main.code).toMatch(/\bprocess\.on\(/);
    expect(sources.filter(isMain)).toHaveLength(2);
  });

  it('have time only from the clock', () => {
    // A socket's own limit is the system's to watch: only it knows whether a client still takes something.
    const pattern =
      /(?<![sS]ocket\.)\b(setTimeout|setInterval|setImmediate|Date\.now|performance\.now|new Date\(\)|process\.(hrtime|uptime)|AbortSignal\.timeout)\b/;
    expect(placesOf(pattern, (source) => source.name === 'src/shared/clock' || isDemo(source))).toEqual([]);
    expect(importsThat((_, target) => /^(node:)?timers|^(node:)?perf_hooks$/.test(target))).toEqual([]);
  });

  it('are built where the program is put together, and handed to everything else', () => {
    const isComposition = (source: Source) =>
      isMain(source) ||
      isCommandMain(source) ||
      isOneOf('src/primary/service', 'src/primary/model-cli', 'src/shared/proc/sweep-orphans')(source);
    const effects =
      /\b(systemClock|createLogger\(|new (Fleet|Supervisor|CliLauncher|CliProgram|ProcessScanner|SlotQueue|JobRunner|Status)\()/;
    const isDefinition = isOneOf('src/shared/clock', 'src/shared/logger');
    expect(placesOf(effects, (source) => isComposition(source) || isDefinition(source))).toEqual([]);
  });

  it('never wait in a way that stalls the house', () => {
    const pattern = /\b(\w+Sync)\(|Atomics\.wait\b/;
    const known = isOneOf('src/shared/product', 'src/shared/logger', 'src/shared/log-output'); // at the start, and at the very end
    expect(placesOf(pattern, (source) => known(source) || isDemo(source))).toEqual([]);
  });
});

describe('the code', () => {
  it.each<[string, RegExp]>([
    ['any', /(?<![\w.$])any(?=\s*[;,)>\]}|&=[]|$)/],
    ['default exports', /^\s*export\s+default\b|\bas default\b/],
    ['module-level let or var', /^(export\s+)?(let|var)\b/],
    [
      'module-level collections that grow',
      /^(export\s+)?const .*=\s*(new (Map|Set|WeakMap|WeakSet)\b[^(]*\(\)|\[\]|\{\});/,
    ],
  ])('has no %s', (_, pattern) => {
    expect(placesOf(pattern, () => false)).toEqual([]);
  });

  it('does not switch the type checker off', () => {
    const switches = /@ts-(ignore|nocheck|expect-error)/;
    expect(sources.filter(({ text }) => switches.test(text)).map(({ path }) => path)).toEqual([]);
  });

  it('is in files of 250 lines at most, half of them of 60 at most', () => {
    const sizes = sources.map(({ path, lineCount }) => ({ path, lineCount }));
    expect(sizes.filter(({ lineCount }) => lineCount > 250)).toEqual([]);
    expect(median(sizes.map(({ lineCount }) => lineCount))).toBeLessThanOrEqual(60);
  });

  it('is in functions of 40 lines at most, half of them of 8 at most', () => {
    const functions = sources.flatMap((source) => source.functions).toSorted((a, b) => b.lines - a.lines);
    const longest = functions.slice(0, 5).map(({ place, lines }) => `  ${lines} lines: ${place}`);
    process.stderr.write(`The longest functions:\n${longest.join('\n')}\n`);
    expect(functions.length).toBeGreaterThan(2 * sources.length);
    expect(median(functions.map(({ lines }) => lines))).toBeLessThanOrEqual(8);
    expect(functions.filter(({ lines }) => lines > 40)).toEqual([]);
  });
});

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}
