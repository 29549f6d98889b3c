import { useEffect, useState } from 'preact/hooks';
import { useParts } from '../base/context.mjs';
import type { MarkdownView } from './turns.mjs';

/** Text is shown as it is until the code is there, and where it can't be had. */
export function useMarkdown(isNeeded: boolean): MarkdownView | null {
  const { link } = useParts();
  const [view, setView] = useState<MarkdownView | null>(null);
  useEffect(() => {
    if (!isNeeded || view !== null) return;
    import('./markdown.mjs').then(
      ({ Markdown }) => setView(() => Markdown),
      () => link.lost(),
    );
  }, [isNeeded, view, link]);
  return view;
}
