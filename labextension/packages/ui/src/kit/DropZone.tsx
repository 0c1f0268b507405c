import { Ban, Upload } from 'lucide-react';
import { useRef, useState, type DragEvent, type ReactNode } from 'react';

interface Props {
  /** What becomes of what is dropped: `Upload into runs/7`. */
  label: string;
  /** Why nothing can be dropped here; null where it can. */
  refusal: string | null;
  onDrop(transfer: DataTransfer): void;
  children: ReactNode;
}

/** Takes files from outside of the browser, anywhere on it, and shows that it does. */
export function DropZone({ label, refusal, onDrop, children }: Props): JSX.Element {
  const [over, setOver] = useState(false);
  // Every element that the pointer passes tells of it: what counts is the sum.
  const depth = useRef(0);
  const move = (event: DragEvent, by: number): void => {
    if (!bringsFiles(event)) {
      return;
    }
    event.preventDefault();
    depth.current = Math.max(0, depth.current + by);
    setOver(depth.current > 0);
  };
  const drop = (event: DragEvent): void => {
    if (!bringsFiles(event)) {
      return;
    }
    event.preventDefault();
    depth.current = 0;
    setOver(false);
    if (refusal === null) {
      onDrop(event.dataTransfer);
    }
  };
  return (
    <div
      className="bai-dropzone"
      data-over={over ? '' : undefined}
      data-refused={refusal === null ? undefined : ''}
      onDragEnter={event => move(event, 1)}
      onDragLeave={event => move(event, -1)}
      onDragOver={event => {
        if (bringsFiles(event)) {
          event.preventDefault();
          event.dataTransfer.dropEffect = refusal === null ? 'copy' : 'none';
        }
      }}
      onDrop={drop}
    >
      {children}
      {over ? (
        <div className="bai-dropzone-cover" role="status">
          <span className="bai-dropzone-word">
            {refusal === null ? (
              <Upload size={28} aria-hidden />
            ) : (
              <Ban size={28} aria-hidden />
            )}
            {refusal ?? label}
          </span>
        </div>
      ) : null}
    </div>
  );
}

function bringsFiles({ dataTransfer }: DragEvent): boolean {
  return [...dataTransfer.types].includes('Files');
}
