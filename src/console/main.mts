import { render } from 'preact';
import { App } from './app.mjs';
import { Api } from './base/api.mjs';
import { KeyKeeper, Link } from './base/connection.mjs';
import { ConsoleContext, type ConsoleParts } from './base/context.mjs';
import { browserClock } from './base/page-clock.mjs';
import { TabMemory } from './base/tab-memory.mjs';
import { html } from './ui/html.mjs';

function consoleParts(): ConsoleParts {
  const keys = new KeyKeeper(sessionStorage);
  const isThere = () =>
    fetch('../version', { cache: 'no-store' }).then(
      ({ status }) => status < 502,
      () => false,
    );
  const link = new Link(isThere, browserClock);
  const api = new Api((...request) => fetch(...request), keys, link);
  return { api, keys, link, clock: browserClock, memory: new TabMemory(sessionStorage) };
}

const root = document.getElementById('console');
if (root !== null) {
  root.replaceChildren(); // the word that it is loading
  render(html`<${ConsoleContext.Provider} value=${consoleParts()}><${App} /><//>`, root);
}
