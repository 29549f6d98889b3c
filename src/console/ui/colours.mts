import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { CodePiece } from './highlight.mjs';

/** Returns the code, in colours once the grammar is loaded. Text that was appended since stays plain. */
export function useColours(code: string, language: string): ComponentChildren {
  const [coloured, setColoured] = useState<{
    readonly code: string;
    readonly pieces: readonly CodePiece[] | null;
  } | null>(null);
  useEffect(() => {
    let isWanted = language !== '';
    if (!isWanted) return;
    import('./highlight.mjs')
      .then(({ highlight }) => highlight(code, language))
      .then(
        (pieces) => isWanted && setColoured({ code, pieces }),
        () => {}, // the code stays plain
      );
    return () => {
      isWanted = false;
    };
  }, [code, language]);
  if (!coloured?.pieces || !code.startsWith(coloured.code)) return code;
  const nodes = coloured.pieces.map(({ kind, text }) =>
    kind === null ? text : html`<span class=${kind}>${text}</span>`,
  );
  return [...nodes, code.slice(coloured.code.length)];
}
