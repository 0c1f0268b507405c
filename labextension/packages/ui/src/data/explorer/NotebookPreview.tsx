import { useTranslation } from 'react-i18next';
import type { Cell, Output } from './notebooks';
import { Scrolled } from './Scrolled';

/** So many cells are shown: a look, not the place to work. */
const MOST = 200;

export function NotebookPreview({ cells }: { cells: Cell[] }): JSX.Element {
  const { t } = useTranslation();
  return (
    <Scrolled>
      {cells.length === 0 ? <p className="bai-nothing">{t('files.emptyFile')}</p> : null}
      {cells.slice(0, MOST).map((cell, at) => (
        <div key={at} className="bai-notebook-cell" data-kind={cell.kind}>
          <span className="bai-notebook-count" aria-hidden>
            {cell.kind === 'code' ? `[${cell.count ?? ' '}]` : ''}
          </span>
          <div className="bai-notebook-body">
            <pre className="bai-notebook-source">{cell.source}</pre>
            {cell.outputs.map((output, index) => (
              <ShownOutput key={index} output={output} />
            ))}
          </div>
        </div>
      ))}
      {cells.length > MOST ? (
        <p className="bai-help">{t('files.firstCells', { count: MOST })}</p>
      ) : null}
    </Scrolled>
  );
}

function ShownOutput({ output }: { output: Output }): JSX.Element {
  const { t } = useTranslation();
  if (output.kind === 'image') {
    return <img src={output.source} alt={output.text || t('files.picture')} />;
  }
  if (output.kind === 'other') {
    return (
      <p className="bai-help">{t('files.notShown', { types: output.types.join(', ') })}</p>
    );
  }
  return (
    <pre className="bai-notebook-output" data-kind={output.kind}>
      {output.text}
    </pre>
  );
}
