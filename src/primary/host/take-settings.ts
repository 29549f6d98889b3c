import type { Environment } from '../../shared/config/config.js';

const ours = /^MODEL_(API|CODE)_/;

/**
 * Takes our own variables out of the environment, so that no child inherits them: there are credentials among them,
 * some perhaps under a mistyped name. Returns the environment as it was.
 */
export function takeSettings(env: Record<string, string | undefined>): Environment {
  const whole = Object.freeze({ ...env });
  for (const name of Object.keys(env).filter((name) => ours.test(name))) delete env[name];
  return whole;
}
