// A reader's hands, for the test: presses keys and buttons, and says in the page's data-hands what did not happen.
{
  const wrong = [];
  const want = (what, is) => { if (!is) wrong.push(what); };
  const press = (target, key) => target.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
  const figure = document.getElementById('ets-2003-random-lookup'), svg = figure.querySelector('.canvas > svg');
  const drawn = () => Number(figure.dataset.drawn), texts = () => [...svg.querySelectorAll('text')].map(text => text.textContent).join('|');
  const live = () => figure.querySelector('[aria-live]').textContent;

  // Figures by keyboard: the first place, the next, the best there, and none.
  press(svg, 'ArrowRight');
  want('the first place', live().includes('at 700: '));
  press(svg, 'ArrowRight');
  want('the next place', live().includes('at 7000: ') && !figure.querySelector('.tip').hidden);
  for (let i = 0; i < 9; i++) press(svg, 'ArrowDown');
  want('the best', live().startsWith('default at 7000') && live().includes('1 of 7'));
  press(svg, 'End');
  want('the last place', live().includes('at 21\u202f000\u202f000'));
  want('published figures beside ours', figure.querySelector('.tip').textContent.includes('judyeh (published)'));
  press(svg, 'Escape');
  want('nothing after Escape', figure.querySelector('.tip').hidden && live() === '');

  // The legend hides a series, and shows one alone; the other run waits there.
  const all = drawn(), legend = figure.querySelectorAll('[data-series]');
  legend[1].click();
  want('a hidden series', drawn() === all - 6 && legend[1].getAttribute('aria-pressed') === 'false');
  legend[0].dispatchEvent(new MouseEvent('click', {shiftKey: true, bubbles: true}));
  want('a series alone', drawn() === 6);
  const other = [...legend].find(button => button.textContent.includes('default (other run)'));
  other.click();
  want('the other run', drawn() === 12);

  // The scale, and figures beside one series.
  figure.querySelector('[data-log=false]').click();
  want('a linear scale begins at zero', texts().split('|').includes('0'));
  figure.querySelector('[data-log=true]').click();
  const choose = figure.querySelector('select');
  choose.value = '0';
  choose.dispatchEvent(new Event('change'));
  want('figures beside one series', texts().includes('times that of default'));
  choose.value = '-1';
  choose.dispatchEvent(new Event('change'));
  legend.forEach((button, i) => { if ((button.getAttribute('aria-pressed') === 'true') === button.textContent.includes('other run')) button.click(); });
  want('all as before', drawn() === all);

  // The pointer.
  const box = svg.getBoundingClientRect();
  svg.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width * 0.5, clientY: box.top + box.height * 0.5, bubbles: true}));
  want('figures under the pointer', figure.querySelector('.tip').textContent.includes('best first'));
  svg.dispatchEvent(new PointerEvent('pointerleave'));

  // What lies in rows.
  const rows = document.getElementById('ets-2003-workloads'), lying = rows.querySelector('.canvas > svg');
  press(lying, 'ArrowDown');
  press(lying, 'ArrowDown');
  want('the second row', rows.querySelector('[aria-live]').textContent.includes('at random insert'));
  press(lying, 'Escape');

  // The tree.
  const tree = document.getElementById('tree'), bases = () => Number(tree.dataset.drawn);
  want('the most bases to begin with', bases() === 3);
  press(tree, 'Home');
  want('one base at first', bases() === 1);
  press(tree, 'ArrowRight');
  want('two bases after a split', bases() === 2 && document.getElementById('tree-text').textContent.includes('splits base 0'));
  press(tree, 'End');
  want('two bases after a join', bases() === 2);
  press(tree, 'Home');
  press(tree, ' ');
  want('it plays', tree.querySelector('button').textContent === 'Pause');
  press(tree, ' ');
  want('it stops', tree.querySelector('button').textContent === 'Play');
  for (let i = 0; i < 50; i++) press(tree, 'ArrowRight');

  document.documentElement.dataset.hands = wrong.length ? 'did not happen: ' + wrong.join('; ') : 'all done';
}
