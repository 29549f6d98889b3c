import { html } from '../ui/html.mjs';
import { Icon } from '../ui/icon.mjs';
import type { AttachedImage } from './asked.mjs';

interface ImageStripProps {
  readonly images: readonly AttachedImage[];
  /** Without it they stay. */
  readonly onRemove?: (image: AttachedImage) => void;
}

/** Small pictures of images that go with a message. */
export function ImageStrip({ images, onRemove }: ImageStripProps) {
  if (images.length === 0) return null;
  return html`<ul class="images">
    ${images.map(
      (image) => html`<li>
        <img src=${`data:${image.mediaType};base64,${image.data}`} alt=${image.name} />
        ${
          onRemove &&
          html`<button
            type="button"
            class="button icon"
            aria-label=${`Remove ${image.name}`}
            onClick=${() => onRemove(image)}
          ><${Icon} name="close" /></button>`
        }
      </li>`,
    )}
  </ul>`;
}
