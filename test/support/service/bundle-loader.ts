import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import Module from 'node:module';
import { dirname, join, sep } from 'node:path';
import { Script } from 'node:vm';

export interface Bundle {
  readonly files: string[];
  /** By folder and name, with a NUL between them. */
  readonly resolved: Record<string, string>;
}

type Run = (exports: unknown, require: unknown, module: Module, file: string, folder: string) => void;

interface Internals {
  _resolveFilename(name: string, parent?: Module, ...more: unknown[]): string;
  _nodeModulePaths(folder: string): string[];
  _cache: unknown;
  prototype: { load(this: Module, file: string): void };
}

/** Lets the program, if it is one of these, load its modules from the bundle in this folder. */
export function load(folder: string, programs: readonly string[]): void {
  const program = process.argv[1] ?? '';
  const index = programs.indexOf(program);
  if (index === -1) return;
  // A cache fits only if V8 has the same flags as at the end of the process that wrote it.
  if (program.endsWith(join('primary', 'main.js')))
    require(join(dirname(program), '..', 'shared', 'node-internals', 'small-heap.js'));
  const base = join(folder, String(index));
  const { files, resolved }: Bundle = JSON.parse(readFileSync(`${base}.json`, 'utf8'));
  serve(files, resolved, compile(base));
}

function compile(base: string): readonly Run[] {
  const cache = `${base}-${process.version}.cache`;
  const cachedData = readIfThere(cache);
  const source = readFileSync(`${base}.js`, 'utf8');
  const script = new Script(source, { filename: `${base}.js`, ...(cachedData && { cachedData }) });
  if (script.cachedDataRejected !== false) process.on('exit', () => writeCache(cache, script));
  return script.runInThisContext();
}

function readIfThere(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}

/** At the end of the process, the cache contains also the functions that were called. */
function writeCache(path: string, script: Script): void {
  try {
    writeFileSync(`${path}.${process.pid}`, script.createCachedData());
    renameSync(`${path}.${process.pid}`, path);
  } catch {
    // A service of another user cannot write there.
  }
}

function serve(files: readonly string[], resolved: Bundle['resolved'], runs: readonly Run[]): void {
  const internals = Module as unknown as Internals;
  const { _resolveFilename: resolveFilename } = internals;
  const { load: loadFile } = internals.prototype;
  const places = new Map(files.map((file, place) => [file, place]));
  internals._resolveFilename = function (name, parent, ...more) {
    const known = parent?.filename ? resolved[`${dirname(parent.filename)}\0${name}`] : undefined;
    return known ?? resolveFilename.call(this, name, parent, ...more);
  };
  internals.prototype.load = function (file) {
    const run = runs[places.get(file) ?? -1];
    if (run === undefined) return loadFile.call(this, file);
    const folder = file.slice(0, file.lastIndexOf(sep));
    this.filename = file;
    this.paths = internals._nodeModulePaths(folder);
    const require = Object.assign((name: string) => this.require(name), {
      resolve: (name: string) => internals._resolveFilename(name, this),
      main: process.mainModule,
      cache: internals._cache,
    });
    run.call(this.exports, this.exports, require, this, file, folder);
    this.loaded = true;
  };
}
