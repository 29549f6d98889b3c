import { join } from 'node:path';
import type { EnvironmentContext, JestEnvironmentConfig } from '@jest/environment';
import { TestEnvironment } from 'jest-environment-node';

const built = join(__dirname, '..', '..', 'src', 'console');

/** Jest reads CommonJS only. Here tests can have the modules of the console as Node itself reads them, outside of Jest's sandbox. */
// biome-ignore lint/style/noDefaultExport: Jest takes nothing else.
export default class Environment extends TestEnvironment {
  constructor(config: JestEnvironmentConfig, context: EnvironmentContext) {
    super(config, context);
    this.global.importConsole = (name: string) => import(join(built, name));
  }
}
