import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import { type ReadType, readTypes } from '../../shared/tables/document-types.js';
import { documentHooks } from './document-hooks.js';
import { TextReader } from './text-reader.js';

export const createDocuments: CreatePrimaryPart = ({ host, readerLauncher }) => {
  const { searchPath, clock } = host;
  const entries = readTypes.map((type) => [type, new TextReader(type, readerLauncher, searchPath, clock)]);
  const readers = Object.fromEntries(entries) as Record<ReadType, TextReader>;
  const start = () => {
    for (const reader of Object.values(readers)) void reader.findReader();
  };
  return { ...documentHooks(readers), handlers: {}, start };
};
