import { join } from 'node:path';
import vm from 'node:vm';
import type { EnvironmentContext, JestEnvironmentConfig } from '@jest/environment';
import { TestEnvironment } from 'jest-environment-node';
import * as openApi from '../documents/openapi.js';

const built = join(__dirname, '..', '..', '..', 'src', 'console');

interface CompiledModule {
  readonly source: string;
  readonly script: vm.Script;
}

const modules = new Map<string, CompiledModule>();
const compile = vm.compileFunction;

/**
 * Compiles each module once per process. Jest loads every module anew for each test file, and compiled it each time,
 * which was a quarter of the processor time of unit tests. A script that runs in another context creates new objects,
 * but shares its bytecode.
 */
const compileOnce: typeof compile = (source, parameters = [], options = {}) => {
  const { filename, parsingContext } = options;
  if (filename === undefined || parsingContext === undefined) return compile(source, parameters, options);
  const head = `(function (${parameters.join(', ')}) {`;
  let compiled = modules.get(filename);
  if (compiled?.source !== source) {
    const columnOffset = -head.length; // stack traces show the columns of the file
    compiled = { source, script: new vm.Script(`${head}${source}\n})`, { filename, columnOffset }) };
    modules.set(filename, compiled);
  }
  return compiled.script.runInContext(parsingContext);
};

/**
 * Jest environment with access to ES modules: Jest loads only CommonJS, so Node imports the console's modules outside
 * of Jest's sandbox.
 */
// biome-ignore lint/style/noDefaultExport: Jest takes nothing else.
export default class Environment extends TestEnvironment {
  constructor(config: JestEnvironmentConfig, context: EnvironmentContext) {
    super(config, context);
    // Coverage counts by positions in the file, without the head.
    vm.compileFunction = config.globalConfig.collectCoverage ? compile : compileOnce;
    this.global.openApiOfProcess = openApi;
    this.global.importConsole = (name: string) => import(join(built, name));
  }
}
