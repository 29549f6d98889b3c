import { pageBody } from '../../../../src/features/files/pages.js';

it('A page names its first and last entry', () => {
  const ids = [{ id: 'a' }, { id: 'b' }];
  expect(pageBody(ids, true, ({ id }) => ({ id }))).toEqual({ data: ids, has_more: true, first_id: 'a', last_id: 'b' });
  expect(pageBody([], false, () => ({}))).toEqual({ data: [], has_more: false, first_id: null, last_id: null });
});
