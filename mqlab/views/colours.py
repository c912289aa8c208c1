"""The colours of Okabe and Ito, which colour-blind people can tell apart."""

BLUE, ORANGE, GREEN, PINK, SKY, VERMILION = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
