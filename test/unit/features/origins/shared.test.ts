import { findWarnings } from '../../../../src/features/origins/shared.js';

it('An allowed origin of null causes a warning, because pages of any site can have it', () => {
  expect(findWarnings({ MODEL_API_ALLOWED_ORIGINS: ['app://obsidian.md', 'null'] })).toEqual([
    expect.stringMatching(/^MODEL_API_ALLOWED_ORIGINS: null allows pages of any site/),
  ]);
  expect(findWarnings({ MODEL_API_ALLOWED_ORIGINS: ['app://obsidian.md'] })).toEqual([]);
});
