import { refuseTools } from '../../../../../../src/primary/cli/adapters/common/offered-tools.js';

it('Tools of the program are refused with the version and at most ten names', () => {
  const names = Array.from({ length: 12 }, (_, index) => `t${index}`);
  const message = 'version 7.0 of qwen cannot be used safely: it offers the model its own tools:';
  expect(() => refuseTools('qwen', '7.0', ['read'])).toThrow(`${message} read`);
  expect(() => refuseTools('qwen', '7.0', names)).toThrow(`${message} ${names.slice(0, 10).join(', ')}, …`);
  expect(() => refuseTools('qwen', null, ['read'])).toThrow('this version of qwen cannot be used safely');
  expect(() => refuseTools('qwen', '7.0', [])).not.toThrow();
});
