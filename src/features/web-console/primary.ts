import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { ValuesOf } from '../../shared/config/feature-variables.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import type { calls, variables } from './shared.js';

/** Creates the part that tells the workers, and the operator in the terminal, whether the console is served. */
export function createWebConsole({ MODEL_API_CONSOLE: setting }: ValuesOf<typeof variables>): CreatePrimaryPart {
  const hasConsole = setting === 'on';
  const handlers: Handlers<typeof calls> = { hasConsole: () => ({ hasConsole }) };
  return () => ({ handlers, bannerRows: (url) => (hasConsole ? [['console', `${url}/console/`]] : []) });
}
