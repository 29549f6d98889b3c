import { useState } from 'preact/hooks';
import type { TabMemory } from '../tab-memory.mjs';
import { useLeaving } from '../use-leaving.mjs';
import { type Draft, emptyDraft } from './draft.mjs';

/** The message that is being written. A reload leaves it as it is, but for images that take too much room. */
export function useDraft(memory: TabMemory): [draft: Draft, change: (change: Partial<Draft>) => void] {
  const [draft, setDraft] = useState(() => memory.recall<Draft>('draft-1') ?? emptyDraft);
  useLeaving(() => memory.remember('draft-1', ...(isEmpty(draft) ? [] : [draft, { ...draft, images: [] }])));
  return [draft, (change) => setDraft((before) => ({ ...before, ...change }))];
}

function isEmpty(draft: Draft): boolean {
  return JSON.stringify(draft) === JSON.stringify(emptyDraft);
}
