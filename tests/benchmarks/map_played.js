button => new Promise(done => {
  const times = [];
  const tick = now => {
    times.push(now);
    if (times.length > 2 && button.textContent === "Play") done(times);
    else requestAnimationFrame(tick);
  };
  button.click();
  requestAnimationFrame(tick);
})
