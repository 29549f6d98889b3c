import { startHostileSearch } from '../../test/support/agents/hostile-search.js';

/** Program with a search server whose results are hostile. Sends its URL to its parent. */

process.once('disconnect', () => process.exit());
void startHostileSearch().then(({ url }) => process.send?.(url));
