import { takeSettings } from '../../../../src/primary/lifecycle/start-environment.js';
import { variables } from '../../../../src/shared/config/variables.js';

it('The variables of prompt-relay are all removed from the environment, including mistyped ones, and nothing else is', () => {
  const others = { PATH: '/bin', MODEL: 'a', MY_MODEL_API_KEY: 'b' };
  const own = Object.fromEntries([...Object.keys(variables), 'MODEL_API_KEYS'].map((name) => [name, 'x']));
  const env = { ...others, ...own };
  expect(takeSettings(env)).toEqual({ ...others, ...own });
  expect(env).toEqual(others);
});
