import { join } from 'node:path';
import type { EnvironmentContext, JestEnvironmentConfig } from '@jest/environment';
import { TestEnvironment } from 'jest-environment-node';

const built = join(__dirname, '..', '..', 'src', 'console');

/**
 * Jest environment with access to ES modules: Jest loads only CommonJS, so Node imports the console's modules outside
 * of Jest's sandbox.
 */
// biome-ignore lint/style/noDefaultExport: Jest takes nothing else.
export default class Environment extends TestEnvironment {
  constructor(config: JestEnvironmentConfig, context: EnvironmentContext) {
    super(config, context);
    this.global.importConsole = (name: string) => import(join(built, name));
  }
}
